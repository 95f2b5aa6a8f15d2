import { insertAlerts, lockSpikes } from "#db/alerting/alert-groups.ts";
import { type AlertRow, readNewestAlerts } from "#db/alerting/alerts.ts";
import type { Database, Queryable } from "#db/client.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import { GROUP_KIND, type NotifyReason } from "#model/kinds.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { Transitions, toAlertRecord } from "#stages/alerting/alert-record.ts";
import { type AlertSpike, toAlertSpike } from "#stages/alerting/alert-spike.ts";
import type { Assess, Context } from "#stages/alerting/assess.ts";
import {
  type Candidate,
  decideGroup,
  type GroupDecision,
  groupCandidates,
  isNamed,
  toCandidate,
  toMutedAlert,
} from "#stages/alerting/decide-group.ts";
import { findGroups, listMembers } from "#stages/alerting/group.ts";
import { addLinks } from "#stages/alerting/message/add-links.ts";
import { buildGroupMessage } from "#stages/alerting/message/group-message.ts";
import { persistTransition } from "./persist-transition.ts";

export interface GroupsSeen {
  readonly spikes: readonly AlertSpike[];
  /** The newest alert of each fingerprint. */
  readonly alerts: ReadonlyMap<string, AlertRow>;
  readonly openGroups: readonly AlertRow[];
  readonly context: Context;
  readonly assess: Assess;
}

export interface GroupsRaised {
  /** Whether a group could change. Then what was read before is out of date. */
  readonly hasTried: boolean;
  /** The reasons of the transitions that were written. */
  readonly reasons: readonly NotifyReason[];
  /** The errors of groups that were not raised. The other groups were raised. */
  readonly failures: readonly unknown[];
}

/**
 * Raises one alert for many spikes: when enough of them have the same group key, or when an open group has new members.
 * Each member keeps its own alert, muted, so that it can be found, acknowledged and resolved by itself. Several
 * replicas may run this at once: spikes are locked and alerts are fenced.
 */
export async function raiseGroups(database: Database, seen: GroupsSeen): Promise<GroupsRaised> {
  const open = new Map(seen.openGroups.map((row) => [row.fingerprint, row]));
  const reasons: NotifyReason[] = [];
  const failures: unknown[] = [];
  let hasTried = false;
  for (const [key, candidates] of groupCandidates(seeCandidates(seen), [...open.keys()])) {
    try {
      if (!isDue(open.get(key), candidates, seen)) continue;
      hasTried = true;
      const reason = await inTransaction(database, async ({ tx }) =>
        raiseGroup(tx, key, await lockCandidates(tx, key, candidates, seen), seen),
      );
      if (reason !== null) reasons.push(reason);
    } catch (thrown) {
      failures.push(thrown);
    }
  }
  return { hasTried, reasons, failures };
}

/** Decided without a lock, because in most runs an open group has no transition. */
function isDue(row: AlertRow | undefined, candidates: readonly Candidate[], seen: GroupsSeen): boolean {
  const { spikes, context, assess } = seen;
  if (row !== undefined)
    return decideGroup({ ...readGroup(row), spikes, candidates }, context, assess) !== null;
  return candidates.length >= (candidates[0]?.assessment.route.timing.groupFrom ?? 0);
}

/** Returns by fingerprint the open group that has the alert as a member. */
export function findOpenGroups(open: readonly AlertRow[]): ReadonlyMap<string, string> {
  return findGroups(open.map(({ fingerprint, details }) => ({ fingerprint, ...parseDetails(details) })));
}

/**
 * Returns the candidates for groups, read without a lock. An alert whose history cannot be read joins no group;
 * raising it alone reports the error.
 */
function seeCandidates({ spikes, alerts, openGroups, assess }: GroupsSeen): Candidate[] {
  const groups = openGroups.map(({ spikeId, details }) => ({
    spikeId,
    named: listMembers(parseDetails(details).message),
  }));
  return spikes.flatMap((spike) => {
    const row = alerts.get(fingerprintOf(spike));
    if (row !== undefined && !Transitions.safeParse(row.transitions).success) return [];
    const candidate = toCandidate(assess(spike), row === undefined ? null : toAlertRecord(row));
    return candidate === null || groups.some((group) => isNamed(candidate, group)) ? [] : [candidate];
  });
}

/** Reads the candidates again under lock: another runner may have notified of some. */
async function lockCandidates(
  tx: Queryable,
  key: string,
  candidates: readonly Candidate[],
  { context, assess }: GroupsSeen,
): Promise<Candidate[]> {
  const locked = await lockSpikes(
    tx,
    candidates.map(({ assessment }) => assessment.spike.id),
  );
  const spikes = locked.map((spike) => toAlertSpike(spike, context.routing.zones));
  const rows = await readNewestAlerts(tx, spikes.map(fingerprintOf));
  return spikes.flatMap((spike) => {
    const row = rows.get(fingerprintOf(spike));
    const candidate = toCandidate(assess(spike), row === undefined ? null : toAlertRecord(row));
    return candidate?.assessment.groupKey === key ? [candidate] : [];
  });
}

/** Returns the group's alert as it is stored, with its last message. */
function readGroup(row: AlertRow | null) {
  return { alert: row === null ? null : toAlertRecord(row), message: parseDetails(row?.details).message };
}

async function raiseGroup(
  tx: Queryable,
  key: string,
  candidates: readonly Candidate[],
  { spikes, context, assess }: GroupsSeen,
): Promise<NotifyReason | null> {
  const row = (await readNewestAlerts(tx, [key])).get(key) ?? null;
  const { alert: before, message } = readGroup(row);
  const decision = decideGroup({ alert: before, message, spikes, candidates }, context, assess);
  if (decision === null) return null;
  const { alert, reason, members, newMembers } = decision;
  const [zoneId = null, ...otherZones] = new Set(members.map((member) => member.zoneId));
  const zone = otherZones.length === 0 ? zoneId : null;
  const identity = { fingerprint: key, kind: GROUP_KIND, zoneId: zone, ruleId: null };
  const toMessage = (alertId: number) => describeGroup(key, alertId, decision, message, context);
  const change = { row, before, alert, reason, recipients: decision, identity, toMessage };
  if (!(await persistTransition(tx, change))) return null;
  await insertAlerts(
    tx,
    newMembers.flatMap((member) => toMutedRow(member, context)),
  );
  return reason;
}

function describeGroup(
  key: string,
  alertId: number,
  { alert, reason, members }: GroupDecision,
  stored: AlertMessage | null,
  { nowMs, routing }: Context,
): AlertMessage {
  if (members.length > 0 || stored === null) {
    const message = buildGroupMessage({ alertId, fingerprint: key, alert, reason, spikes: members });
    return addLinks(message, routing.links, nowMs);
  }
  const { state, transition } = alert;
  return { ...stored, transition, reason, state, endedAt: nowMs, headline: "Flood over" };
}

function toMutedRow(candidate: Candidate, context: Context) {
  const muted = toMutedAlert(candidate, context);
  if (muted === null) return [];
  const { fingerprint, alert } = muted;
  const { state, transition, firedAtMs } = alert;
  const { id: spikeId, zoneId, ruleId, kind } = candidate.assessment.spike;
  const transitions = [...alert.transitions];
  const details = { message: addLinks(muted.message, context.routing.links, context.nowMs) };
  const firedAt = new Date(firedAtMs);
  return [{ firedAt, spikeId, zoneId, ruleId, kind, state, transition, transitions, fingerprint, details }];
}
