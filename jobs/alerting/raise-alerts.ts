import { z } from "zod";
import { readAsks } from "../../db/alerting/advice.ts";
import { readOpenGroups } from "../../db/alerting/alert-groups.ts";
import {
  type AlertRow,
  changeAlert,
  describeAlert,
  insertAlert,
  insertNotifications,
  lockSpike,
  readNewestAlerts,
  readRaisableSpikes,
} from "../../db/alerting/alerts.ts";
import type { Database, Queryable } from "../../db/client.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { type AlertSpike, toAlertSpike } from "../../src/alerting/alert-spike.ts";
import { assessAlert, isOutdated, type Scene } from "../../src/alerting/assess-alert.ts";
import { decideAlert } from "../../src/alerting/decide-alert.ts";
import { findSpokenFor } from "../../src/alerting/group-candidates.ts";
import { addLinks } from "../../src/alerting/message/add-links.ts";
import { buildMessage } from "../../src/alerting/message/build-message.ts";
import { nextAlert } from "../../src/alerting/next-alert.ts";
import { mannerOf } from "../../src/alerting/routing/manner.ts";
import type { Routing } from "../../src/alerting/routing/routing.ts";
import { routeSelf } from "../../src/alerting/self/route-self.ts";
import { toAlertRecord } from "../../src/alerting/to-alert-record.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { ANSWER_KEEPS_MS, REFUSAL_KEEPS_MS } from "../../src/model/advice-row.ts";
import type { AlertRecord, NotifyReason } from "../../src/model/alert-record.ts";
import { fingerprintOf } from "../../src/model/fingerprint.ts";
import { defineJob } from "../../src/queue/define-job.ts";
import { reportCoverage } from "../coverage/report-coverage.ts";
import { describeRaised, readAdvice, readSaid } from "./describe-raised.ts";
import { raiseGroups } from "./raise-groups.ts";
import { readActiveSilences } from "./read-active-silences.ts";
import { resolveUntold } from "./resolve-untold.ts";
import { toNotifications } from "./to-notifications.ts";

/** A spike that opened and closed while nothing was raised is told late, for this long. */
const MISSED_SPIKE_MS = 24 * 3_600_000;

export interface RaiseAlertsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** Who hears of what; asked anew at every run, because a running service may be told otherwise. */
  readonly routing: () => Routing;
  /** What another message does on a channel is its kind's to say; each rings without. */
  readonly notifiers?: ReadonlyMap<string, { readonly kind: string }>;
  /** The configured zones: hours of others concern nobody any more. */
  readonly zoneIds: readonly number[];
  /** Told when something was written for the channels. */
  readonly afterAlerts: () => Promise<void>;
}

/**
 * Turns spikes and advice into alerts and, in the same transaction, outbox rows: `first` at once with the advice pending,
 * `advice` when it has come, `resolved` when the spike is over. Safe to run twice and beside itself: an alert is decided
 * and written under the lock of its spike, and moves on only from the transition that was read. One alert that cannot be
 * raised does not hold up the others; the run then fails at its end, to be tried again. Also tells of hours that were
 * lost or are about to be.
 */
export function createRaiseAlertsJob(deps: RaiseAlertsDeps) {
  const overdueSince = new Map<number, number>();
  return defineJob({
    name: "raise-alerts",
    queue: "derive",
    payload: z.object({}),
    attempts: 5,
    timeoutMs: 60_000,
    async run(_payload, signal) {
      // Neither kind of alert waits for the other to be well.
      const runs = await Promise.allSettled([reportZones(deps, overdueSince), raiseSpikes(deps, signal)]);
      if (runs.some((run) => run.status === "rejected" || run.value > 0)) await deps.afterAlerts();
      for (const run of runs) if (run.status === "rejected") throw run.reason;
    },
  });
}

async function reportZones(deps: RaiseAlertsDeps, overdueSince: Map<number, number>): Promise<number> {
  const { database, clock, log, routing } = deps;
  const nowMs = clock();
  const scene = { routing: routing(), silences: await readActiveSilences(database.db, log, nowMs), nowMs };
  return reportCoverage({ ...deps, overdueSince, routeOf: (subject) => routeSelf(scene, subject) });
}

/** How many transitions were written. */
async function raiseSpikes(deps: RaiseAlertsDeps, signal: AbortSignal): Promise<number> {
  const { database, log } = deps;
  const nowMs = deps.clock();
  const rows = await readRaisableSpikes(database.db, { closedAfterMs: nowMs - MISSED_SPIKE_MS });
  const open = await readOpenGroups(database.db);
  if (rows.length + open.length === 0) return 0;
  const { zones } = deps.routing();
  const spikes = rows.map((row) => toAlertSpike(row, zones));
  const scene = await readScene(deps, spikes, nowMs);
  let alerts = await readNewestAlerts(database.db, spikes.map(fingerprintOf));
  // First what is said once for many: then nobody says it again for each.
  const groups = await raiseGroups(database, { spikes, alerts, open, spokenFor: listSpokenFor(open), scene });
  const reasons: NotifyReason[] = [...groups.reasons];
  const failures: unknown[] = [...groups.failures];
  for (const failure of failures) log.error({ err: failure }, "group of alerts not raised");
  const quiet = await resolveUntold(database.db, spikes, alerts, scene);
  reasons.push(...Array<NotifyReason>(quiet).fill("resolved"));
  // Also where another runner was first: what it has done need not be looked at one by one.
  alerts = await readNewestAlerts(database.db, spikes.map(fingerprintOf));
  const groupsNow = await readOpenGroups(database.db);
  const speaking = {
    keys: new Set(groupsNow.map(({ fingerprint }) => fingerprint)),
    spokenFor: listSpokenFor(groupsNow),
  };
  for (const spike of spikes) {
    signal.throwIfAborted();
    try {
      if (!hasNews(spike, alerts.get(fingerprintOf(spike)) ?? null, scene, speaking)) continue;
      reasons.push(...(await raise(database, spike.id, scene, speaking)));
    } catch (thrown) {
      failures.push(thrown);
      log.error({ err: thrown, spikeId: spike.id }, "alert not raised");
    }
  }
  if (reasons.length > 0) log.info({ transitions: countEach(reasons) }, "alerts raised");
  if (failures.length > 0) throw failures[0];
  return reasons.length;
}

async function readScene(
  { database, routing, notifiers, log }: RaiseAlertsDeps,
  spikes: readonly AlertSpike[],
  nowMs: number,
): Promise<Scene> {
  const span = { sinceMs: nowMs - REFUSAL_KEEPS_MS, beforeOpeningMs: ANSWER_KEEPS_MS };
  const asks = await readAsks(database.db, span);
  const silences = await readActiveSilences(database.db, log, nowMs);
  const firing = spikes.filter(({ closedAtMs }) => closedAtMs === null);
  const mannerIn = (channel: string) => mannerOf(notifiers?.get(channel)?.kind);
  return { nowMs, routing: routing(), asks, silences, firing, mannerOf: mannerIn };
}

/** The groups that are open: their keys, and by fingerprint the one that has told of it. */
interface Speaking {
  readonly keys: ReadonlySet<string>;
  readonly spokenFor: ReadonlyMap<string, string>;
}

function listSpokenFor(open: readonly AlertRow[]): ReadonlyMap<string, string> {
  return findSpokenFor(open.map((row) => ({ fingerprint: row.fingerprint, said: readSaid(row) })));
}

/** Looked at without a lock: most runs find nothing to say about most spikes. */
function hasNews(
  spike: AlertSpike,
  row: AlertRow | null,
  scene: Scene,
  { keys, spokenFor }: Speaking,
): boolean {
  const alert = row === null ? null : toAlertRecord(row);
  const isSpokenFor = (key: string | null) =>
    (key !== null && keys.has(key)) || spokenFor.has(fingerprintOf(spike));
  const { reason, standing } = assessAlert(spike, alert, scene, isSpokenFor);
  return (
    reason !== "none" || (row !== null && alert !== null && isOutdated(alert, readSaid(row), spike, standing))
  );
}

/** The transitions that were written; usually one, two for an attack that was over before it was told. */
function raise(
  database: Database,
  spikeId: number,
  scene: Scene,
  { spokenFor }: Speaking,
): Promise<NotifyReason[]> {
  return inTransaction(database, async ({ tx }) => {
    const stored = await lockSpike(tx, spikeId);
    if (stored === null) return [];
    const spike = toAlertSpike(stored, scene.routing.zones);
    const fingerprint = fingerprintOf(spike);
    const reasons: NotifyReason[] = [];
    for (;;) {
      const row = (await readNewestAlerts(tx, [fingerprint])).get(fingerprint) ?? null;
      const reason = await advance(tx, row, spike, { scene, groupFingerprint: spokenFor.get(fingerprint) });
      if (reason === "none") return reasons;
      reasons.push(reason);
    }
  });
}

/** Writes the next transition, its message and its outbox rows; `none` when there is none to write. */
async function advance(
  tx: Queryable,
  row: AlertRow | null,
  spike: AlertSpike,
  { scene, groupFingerprint }: { scene: Scene; groupFingerprint: string | undefined },
): Promise<NotifyReason | "none"> {
  const before = row === null ? null : toAlertRecord(row);
  const { groupKey } = assessAlert(spike, before, scene, () => false);
  // Read again under the spike's lock: another runner may have let a group speak meanwhile, or ended it.
  const keys = [groupKey, groupFingerprint].filter((key) => key != null);
  const groups = [...(await readNewestAlerts(tx, keys)).values()];
  const isSpokenFor = groups.some(({ state }) => state !== "resolved");
  const decision = decideAlert(spike, before, scene, () => isSpokenFor);
  const { reason, standing, silence, mutedBy, telling, told } = decision;
  if (reason === "none") {
    if (row !== null && before !== null && isOutdated(before, readSaid(row), spike, standing))
      await describeRaised(tx, row, before, spike, standing);
    return reason;
  }
  const { routing, nowMs } = scene;
  const hasAdvice = standing.state === "present";
  const silencedBy = silence?.id ?? null;
  const { held } = telling;
  const muted = { silencedBy, mutedBy, held };
  const alert = nextAlert(before, { reason, spike, ...told, ...muted, hasAdvice, nowMs });
  const alertId = await store(tx, row, alert, reason, spike);
  if (alertId === null) return "none";
  const advice = await readAdvice(tx, spike, standing);
  const said = buildMessage({ alertId, fingerprint: fingerprintOf(spike), alert, reason, spike, advice });
  const message = addLinks(said, routing.links, nowMs);
  await describeAlert(tx, alertId, { details: { message }, spikeId: spike.id });
  await insertNotifications(tx, toNotifications(message, { ...told, alert: before }));
  return reason;
}

/** The alert's id, or null when another runner or a person has moved it meanwhile. */
async function store(
  tx: Queryable,
  row: AlertRow | null,
  alert: AlertRecord,
  reason: NotifyReason,
  spike: AlertSpike,
): Promise<number | null> {
  const { state, transition, transitions, spikeId, firedAtMs, resolvedAtMs } = alert;
  const resolvedAt = resolvedAtMs === null ? null : new Date(resolvedAtMs);
  const change = { state, transition, transitions, spikeId, resolvedAt, kind: spike.kind };
  if (row !== null && reason !== "first") return (await changeAlert(tx, row, change)) ? row.id : null;
  const { zoneId, ruleId } = spike;
  const fingerprint = fingerprintOf(spike);
  return insertAlert(tx, { ...change, fingerprint, zoneId, ruleId, firedAt: new Date(firedAtMs) });
}

function countEach(reasons: readonly NotifyReason[]): Partial<Record<NotifyReason, number>> {
  const counts: Partial<Record<NotifyReason, number>> = {};
  for (const reason of reasons) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}
