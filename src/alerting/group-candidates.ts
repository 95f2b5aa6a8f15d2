import type { AlertMessage } from "../model/alert-message.ts";
import { type AlertRecord, toldChannels } from "../model/alert-record.ts";
import { fingerprintOf } from "../model/fingerprint.ts";
import type { AlertSpike } from "./alert-spike.ts";
import { type Assessment, assessAlert, type Scene } from "./assess-alert.ts";

/** A spike that somebody should hear of and nobody has. */
export interface Candidate {
  readonly spike: AlertSpike;
  /** The newest of its fingerprint. */
  readonly alert: AlertRecord | null;
  readonly assessment: Assessment;
}

/** Null for every other spike. */
export function toCandidate(spike: AlertSpike, alert: AlertRecord | null, scene: Scene): Candidate | null {
  const isTold = alert !== null && toldChannels(alert).size > 0 && alert.state !== "resolved";
  if (spike.closedAtMs !== null || isTold) return null;
  if (alert?.state === "resolved" && alert.spikeId !== null && spike.id <= alert.spikeId) return null;
  const assessment = assessAlert(spike, alert, scene, () => false);
  return assessment.silence === null && assessment.mutedBy === null ? { spike, alert, assessment } : null;
}

/** By the group that may speak for them; of `openKeys` also those that have none. */
export function groupCandidates(
  candidates: readonly Candidate[],
  openKeys: readonly string[],
): ReadonlyMap<string, readonly Candidate[]> {
  const byKey = new Map<string, Candidate[]>(openKeys.map((key) => [key, []]));
  for (const candidate of candidates) {
    const key = candidate.assessment.groupKey;
    if (key === null) continue;
    const companions = byKey.get(key);
    if (companions === undefined) byKey.set(key, [candidate]);
    else companions.push(candidate);
  }
  return byKey;
}

/** Those of the spikes that a group's last message spoke for. */
export function findMembers(
  said: AlertMessage | undefined,
  spikes: readonly AlertSpike[],
): readonly AlertSpike[] {
  const prints = new Set(listMembers(said));
  return spikes.filter((spike) => prints.has(fingerprintOf(spike)));
}

/**
 * By fingerprint, the open group that has told of it. A rule stays its group's while that speaks, also where its severity
 * has meanwhile become one that leads elsewhere: the group leads there as well, and nobody is told twice.
 */
export function findSpokenFor(
  open: readonly { readonly fingerprint: string; readonly said: AlertMessage | undefined }[],
): ReadonlyMap<string, string> {
  return new Map(
    open.flatMap(({ fingerprint, said }) => listMembers(said).map((print) => [print, fingerprint] as const)),
  );
}

function listMembers(said: AlertMessage | undefined): string[] {
  return (said?.members ?? []).map((member) => fingerprintOf({ kind: "spike", ...member }));
}
