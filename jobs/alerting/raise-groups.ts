import { GROUP_KIND, insertAlerts, lockSpikes } from "../../db/alerting/alert-groups.ts";
import {
  type AlertRow,
  changeAlert,
  describeAlert,
  insertAlert,
  insertNotifications,
  readNewestAlerts,
} from "../../db/alerting/alerts.ts";
import type { Database, Queryable } from "../../db/client.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { type AlertSpike, toAlertSpike } from "../../src/alerting/alert-spike.ts";
import type { Scene } from "../../src/alerting/assess-alert.ts";
import { decideGroup, type GroupDecision } from "../../src/alerting/decide-group.ts";
import { type Candidate, groupCandidates, toCandidate } from "../../src/alerting/group-candidates.ts";
import { addLinks } from "../../src/alerting/message/add-links.ts";
import { buildGroupMessage } from "../../src/alerting/message/group-message.ts";
import { toMutedAlert } from "../../src/alerting/muted-alert.ts";
import { toAlertRecord } from "../../src/alerting/to-alert-record.ts";
import type { AlertMessage } from "../../src/model/alert-message.ts";
import { type NotifyReason, Transitions } from "../../src/model/alert-record.ts";
import { fingerprintOf } from "../../src/model/fingerprint.ts";
import { toNotifications } from "./to-notifications.ts";

export interface GroupsSeen {
  readonly spikes: readonly AlertSpike[];
  /** The newest of each fingerprint. */
  readonly alerts: ReadonlyMap<string, AlertRow>;
  /** Groups that speak already, and by fingerprint what they have told of. */
  readonly open: readonly AlertRow[];
  readonly spokenFor: ReadonlyMap<string, string>;
  readonly scene: Scene;
}

export interface GroupsRaised {
  /** Of the transitions that were written. */
  readonly reasons: readonly NotifyReason[];
  /** What kept a group from being raised; it does not hold up the others. */
  readonly failures: readonly unknown[];
}

/**
 * One message for what spikes at once: rules that nobody has heard of and that are told in the same place become an alert
 * of their own, which lives as every alert does. Each rule keeps its alert, muted, so that it can be found, acknowledged
 * and closed by itself. Safe beside itself, as its rows are locked and fenced.
 */
export async function raiseGroups(database: Database, seen: GroupsSeen): Promise<GroupsRaised> {
  const { open, scene } = seen;
  const openKeys = open.map(({ fingerprint }) => fingerprint);
  const reasons: NotifyReason[] = [];
  const failures: unknown[] = [];
  for (const [key, candidates] of groupCandidates(seeCandidates(seen), openKeys)) {
    const groupFrom = candidates[0]?.assessment.telling.timing.groupFrom ?? 0;
    if (!openKeys.includes(key) && candidates.length < groupFrom) continue;
    try {
      const reason = await inTransaction(database, async ({ tx }) => {
        const locked = await lockCandidates(tx, key, candidates, scene);
        return raiseGroup(tx, key, locked, seen);
      });
      if (reason !== "none") reasons.push(reason);
    } catch (thrown) {
      failures.push(thrown);
    }
  }
  return { reasons, failures };
}

/** Looked at without a lock. One that cannot be read is nobody's companion; raising it alone says why. */
function seeCandidates({ spikes, alerts, spokenFor, scene }: GroupsSeen): Candidate[] {
  return spikes.flatMap((spike) => {
    if (spokenFor.has(fingerprintOf(spike))) return [];
    const row = alerts.get(fingerprintOf(spike));
    if (row !== undefined && !Transitions.safeParse(row.transitions).success) return [];
    return toCandidate(spike, row === undefined ? null : toAlertRecord(row), scene) ?? [];
  });
}

/** As they are now: what another runner has told meanwhile is nobody's candidate any more. */
async function lockCandidates(
  tx: Queryable,
  key: string,
  seen: readonly Candidate[],
  scene: Scene,
): Promise<Candidate[]> {
  const ids = seen.map(({ spike }) => spike.id);
  const locked = await lockSpikes(tx, ids);
  const spikes = locked.map((spike) => toAlertSpike(spike, scene.routing.zones));
  const rows = await readNewestAlerts(tx, spikes.map(fingerprintOf));
  return spikes.flatMap((spike) => {
    const row = rows.get(fingerprintOf(spike));
    const candidate = toCandidate(spike, row === undefined ? null : toAlertRecord(row), scene);
    return candidate !== null && candidate.assessment.groupKey === key ? [candidate] : [];
  });
}

async function raiseGroup(
  tx: Queryable,
  key: string,
  candidates: readonly Candidate[],
  { spikes, scene }: GroupsSeen,
): Promise<NotifyReason | "none"> {
  const row = (await readNewestAlerts(tx, [key])).get(key) ?? null;
  const before = row === null ? null : toAlertRecord(row);
  const said = row === null ? undefined : (row.details as { message?: AlertMessage }).message;
  const decision = decideGroup({ before, said, spikes, candidates }, scene);
  if (decision === null) return "none";
  const alertId = await store(tx, key, row, decision);
  if (alertId === null) return "none";
  const message = describeGroup(key, alertId, decision, said, scene);
  await describeAlert(tx, alertId, { details: { message }, spikeId: decision.alert.spikeId });
  await insertNotifications(tx, toNotifications(message, { ...decision.told, alert: decision.before }));
  await insertAlerts(
    tx,
    decision.newcomers.flatMap((one) => toRow(one, scene)),
  );
  return decision.reason;
}

/** The alert's id, or null when another runner or a person has moved it meanwhile. */
async function store(
  tx: Queryable,
  key: string,
  row: AlertRow | null,
  { alert, reason, members }: GroupDecision,
): Promise<number | null> {
  const { state, transition, transitions, spikeId, firedAtMs, resolvedAtMs } = alert;
  const resolvedAt = resolvedAtMs === null ? null : new Date(resolvedAtMs);
  const change = { state, transition, transitions: [...transitions], spikeId, resolvedAt, kind: GROUP_KIND };
  if (row !== null && reason !== "first") return (await changeAlert(tx, row, change)) ? row.id : null;
  const [zoneId = null, ...otherZones] = new Set(members.map((member) => member.zoneId));
  const zone = otherZones.length === 0 ? zoneId : null;
  const firedAt = new Date(firedAtMs);
  return insertAlert(tx, { ...change, fingerprint: key, zoneId: zone, ruleId: null, firedAt });
}

function describeGroup(
  key: string,
  alertId: number,
  { alert, reason, members }: GroupDecision,
  said: AlertMessage | undefined,
  { nowMs, routing }: Scene,
): AlertMessage {
  if (members.length > 0 || said === undefined) {
    const message = buildGroupMessage({ alertId, fingerprint: key, alert, reason, spikes: members });
    return addLinks(message, routing.links, nowMs);
  }
  const { state, transition } = alert;
  return { ...said, transition, reason, state, endedAt: nowMs, headline: "Flood over" };
}

function toRow(candidate: Candidate, { nowMs, routing }: Scene) {
  const muted = toMutedAlert(candidate, nowMs);
  if (muted === null) return [];
  const { alert, fingerprint } = muted;
  const message = addLinks(muted.message, routing.links, nowMs);
  const { id: spikeId, zoneId, ruleId, kind } = candidate.spike;
  const { state, transition, transitions, firedAtMs } = alert;
  const firedAt = new Date(firedAtMs);
  const history = [...transitions];
  const details = { message };
  return [
    { firedAt, spikeId, zoneId, ruleId, kind, state, transition, transitions: history, fingerprint, details },
  ];
}
