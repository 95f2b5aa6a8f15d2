import { z } from "zod";
import { notifiedChannels } from "#alerts/rules/alert-history.ts";
import { type AlertRecord, toAlertRecord } from "#alerts/rules/alert-record.ts";
import { type AlertSpike, toAlertSpike } from "#alerts/rules/alert-spike.ts";
import type { Decision } from "#alerts/rules/decide.ts";
import {
  alertOf,
  type Decided,
  type Decisions,
  decideAll,
  endTogether,
  findDeciding,
  findTakeOvers,
  isResolved,
  type Read,
} from "#alerts/rules/decide-all.ts";
import { headlineOf } from "#alerts/rules/message/headline.ts";
import { routeSelf } from "#alerts/rules/self-alert.ts";
import type { Silence } from "#alerts/rules/silence.ts";
import { readAsks } from "#db/alerts/advice.ts";
import {
  type AlertRow,
  readNewestAlerts,
  readRaisableSpikes,
  resolveUnnotified,
  takeOverAlert,
  type UnnotifiedResolve,
} from "#db/alerts/alerts.ts";
import { readNotes } from "#db/alerts/notes.ts";
import type { Database } from "#db/client.ts";
import { readFirstEventMinutes } from "#db/detection/source-events.ts";
import { askForVerdicts, readVerdicts } from "#db/detection/verdicts.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { DAY_MS } from "#lib/units.ts";
import type { ActionStates } from "#model/action-class.ts";
import { ANSWER_KEEPS_MS, REFUSAL_KEEPS_MS } from "#model/advice.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import type { NotifyReason } from "#model/kinds.ts";
import { isChangeKind, startOfHistory } from "#model/rules.ts";
import { isEnding } from "#model/words.ts";
import { defineJob, oneAtATime } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { examine, openScope } from "../health/conditions/condition.ts";
import { COVERAGE_CONDITIONS } from "../health/conditions/coverage.ts";
import { raiseExamined } from "./raise-self.ts";
import { isOutdated, isUnsent, raiseSpike, raiseUnsent } from "./raise-spike.ts";
import { readActiveSilences } from "./report-service.ts";

/** A spike that opened and closed while no alert was raised still raises one, for this long. */
const MISSED_SPIKE_MS = 24 * 3_600_000;
/** How long a message waits for a verdict of now. With the pause until the next run it is sent within 3 seconds. */
const VERDICT_WAIT_MS = 2_500;
/** The most spikes of which one run reads verdicts, the newest first: a flood of rules has one verdict, its incident's. */
const MOST_JUDGED = 500;

/** An alert that opened longer ago keeps what its messages said. */
const NOTES_MS = DAY_MS;

/** Alerts that notify nobody are written so many in one transaction. */
const UNSENT_AT_ONCE = 500;

export interface RaiseAlertsDeps
  extends Pick<JobContext, "database" | "clock" | "log" | "routing" | "zoneIds" | "afterAlerts"> {
  /**
   * The channels' capabilities decide what a later message does on a channel. If left out, every channel posts anew.
   */
  readonly notifiers?: ReadonlyMap<string, Pick<Notifier, "capabilities">>;
  /** Called while a message waits for a verdict: it has to be judged, and the job to be run again. If left out, no message waits. */
  readonly whileAwaited?: () => void;
  /** If left out, the built-in words say what became of requests. */
  readonly actions?: ActionStates;
}

/**
 * Turns spikes and advice into alerts and, in the same transaction, outbox rows. The steps: load, decide, persist.
 * Safe to run twice and in several replicas at once: an alert is decided and written under the lock of its spike, and only from the transition that was read. An alert that cannot be raised does
 * not stop the others; the job then fails at its end and is tried again. Also raises the alerts about coverage.
 */
export function createRaiseAlertsJob(deps: RaiseAlertsDeps) {
  const begin = createWaits(deps.whileAwaited);
  return defineJob({
    name: "raise-alerts",
    queue: "derive",
    payload: z.object({}),
    attempts: 5,
    timeoutMs: 60_000,
    // Runs that overlap would each try what all of them have read, and wait for one another's locks.
    run: oneAtATime(async (_payload, signal) => {
      const silences = await readActiveSilences(deps.database.db, deps.log, deps.clock());
      // A failure of one kind of alert does not stop the other kind.
      const runs = await Promise.allSettled([
        raiseCoverage(deps, silences),
        raiseSpikes(deps, { silences, begin }, signal),
      ]);
      if (runs.some((run) => run.status === "rejected" || run.value > 0)) await deps.afterAlerts();
      for (const run of runs) if (run.status === "rejected") throw run.reason;
    }),
  });
}

async function raiseCoverage(
  { database, log, clock, zoneIds, routing }: RaiseAlertsDeps,
  silences: readonly Silence[],
): Promise<number> {
  const nowMs = clock();
  const examined = await examine(openScope({ db: database.db, nowMs, zoneIds }), COVERAGE_CONDITIONS);
  const context = { routing: routing(), silences, nowMs };
  return raiseExamined({ database, log, routeOf: (subject) => routeSelf(context, subject) }, examined);
}

/** Returns how many transitions were written. */
async function raiseSpikes(
  deps: RaiseAlertsDeps,
  { silences, begin }: { silences: readonly Silence[]; begin: ReturnType<typeof createWaits> },
  signal: AbortSignal,
): Promise<number> {
  const { database, log } = deps;
  const nowMs = deps.clock();
  const rows = await readRaisableSpikes(database.db, { closedAfterMs: nowMs - MISSED_SPIKE_MS });
  const routing = deps.routing();
  const read = endTogether(
    rows.map((row) => toAlertSpike(row, routing.zones)),
    nowMs,
  );
  if (read.length === 0) return 0;
  const rowsOfAlerts = await readNewestAlerts(database.db, read.map(alertOf));
  const { alerts, unreadable } = readHistories(rowsOfAlerts.values());
  const recordOf = (fingerprint: string) => alerts.get(fingerprint)?.record ?? null;
  const readable = read.filter((spike) => !unreadable.has(alertOf(spike)));
  const found = await takeOver(database, readable, alerts);
  const judged = new Set(findJudged(findDeciding(found), recordOf));
  const verdicts = await readVerdicts(database.db, [...judged]);
  const decisions = decideAll(found, await readContext(deps, found, { recordOf, silences, verdicts, nowMs }));
  const run = begin(nowMs);
  const waits = ({ spike, needsVerdict }: Decided) =>
    judged.has(spike.id) && needsVerdict && run.mustWait(spike.id);
  const { reasons, failures } = await raiseEach(deps, decisions, { alerts, waits }, signal);
  await run.end((ids) => askForVerdicts(database.db, ids, nowMs));
  if (reasons.length > 0) log.info({ transitions: countEach(reasons) }, "alerts raised");
  for (const [fingerprint, err] of unreadable) log.error({ err, fingerprint }, "alert not raised");
  const [failure] = [...failures, ...unreadable.values()];
  if (failure !== undefined) throw failure;
  return reasons.length;
}

async function readContext(
  { database, routing, notifiers, actions }: RaiseAlertsDeps,
  spikes: readonly AlertSpike[],
  given: Pick<Read, "nowMs" | "silences" | "verdicts" | "recordOf">,
): Promise<Read> {
  const zoneIds = [...new Set(spikes.map(({ zoneId }) => zoneId))];
  const span = { sinceMs: given.nowMs - REFUSAL_KEEPS_MS, beforeOpeningMs: ANSWER_KEEPS_MS };
  return {
    ...given,
    routing: routing(),
    asks: await readAsks(database.db, span),
    notes: await readNotes(database.db, given.nowMs - NOTES_MS, given.nowMs),
    firstMinutes: await readFirstEventMinutes(database.db, zoneIds, startOfHistory(given.nowMs)),
    laterMessageOf: (channel: string) =>
      notifiers?.get(channel)?.capabilities.laterTransitions ?? "post-anew",
    actions,
  };
}

/** The newest alerts by their fingerprints. */
type KnownAlerts = Map<string, { readonly row: AlertRow; readonly record: AlertRecord }>;

/** Returns the alerts, and why others of them cannot be read, by their fingerprints. */
function readHistories(rows: Iterable<AlertRow>) {
  const alerts: KnownAlerts = new Map();
  const unreadable = new Map<string, unknown>();
  for (const row of rows)
    try {
      alerts.set(row.fingerprint, { row, record: toAlertRecord(row) });
    } catch (thrown) {
      unreadable.set(row.fingerprint, thrown);
    }
  return { alerts, unreadable };
}

/** Returns a function that begins a run. It knows since when the messages of spikes have waited for a verdict in the runs before. */
function createWaits(whileAwaited: (() => void) | undefined) {
  let seenSince: ReadonlyMap<number, number> = new Map();
  return (nowMs: number) => {
    const [before, now] = [seenSince, new Map<number, number>()];
    seenSince = now;
    const waiting: number[] = [];
    return {
      /** Returns whether a message that lacks a verdict still waits for it. */
      mustWait(spikeId: number): boolean {
        const since = before.get(spikeId) ?? nowMs;
        now.set(spikeId, since);
        const waits = whileAwaited !== undefined && nowMs - since < VERDICT_WAIT_MS;
        if (waits) waiting.push(spikeId);
        return waits;
      },
      async end(ask: (spikeIds: readonly number[]) => Promise<void>): Promise<void> {
        if (waiting.length === 0) return;
        await ask(waiting);
        whileAwaited?.();
      },
    };
  };
}

/**
 * Lets incidents go on with the alerts of rules that they explain. Returns the spikes, with the alerts that they took over.
 * Changes `alerts` where an alert has got another spike. Of two replicas one takes an alert over, and the other one sees it in
 * its next run.
 */
async function takeOver(
  database: Database,
  spikes: readonly AlertSpike[],
  alerts: KnownAlerts,
): Promise<AlertSpike[]> {
  const recordOf = (one: AlertSpike) => alerts.get(fingerprintOf(one))?.record ?? null;
  const taken = new Map<AlertSpike, string>();
  for (const { spike, member } of findTakeOvers(spikes, recordOf)) {
    const known = alerts.get(fingerprintOf(member));
    if (known === undefined || !(await takeOverAlert(database, spike.id, known.row))) continue;
    const { row, record } = known;
    const spikeId = spike.id;
    alerts.set(row.fingerprint, { row: { ...row, spikeId }, record: { ...record, spikeId } });
    taken.set(spike, row.fingerprint);
  }
  return spikes.map((spike) => ({ ...spike, takesOver: taken.get(spike) ?? spike.takesOver ?? null }));
}

/** Returns the ids of spikes whose verdict can matter: a change of a rule and a custom condition have none, and the lead of a member has its own. */
function findJudged(spikes: readonly AlertSpike[], recordOf: Read["recordOf"]): number[] {
  const judged = spikes.filter((one) => {
    const alert = recordOf(alertOf(one));
    if (isChangeKind(one.kind) || one.kind === "custom-condition" || isResolved(one, alert)) return false;
    return one.memberOf == null || (alert !== null && notifiedChannels(alert).size > 0);
  });
  return judged
    .map(({ id }) => id)
    .toSorted((a, b) => b - a)
    .slice(0, MOST_JUDGED);
}

interface Raised {
  readonly reasons: readonly NotifyReason[];
  readonly failures: readonly unknown[];
}

/**
 * Raises the alert of each spike by itself, as far as there is anything to write. What another runner has written since
 * the rows were read is seen under the lock of the spike.
 */
async function raiseEach(
  { database, log }: RaiseAlertsDeps,
  { spikes, deciding, context, assess, decideOn }: Decisions,
  {
    alerts,
    waits,
  }: {
    readonly alerts: ReadonlyMap<string, { readonly row: AlertRow }>;
    readonly waits: (decided: Decided) => boolean;
  },
  signal: AbortSignal,
): Promise<Raised> {
  const membersOf = Map.groupBy(spikes, ({ memberOf }) => memberOf ?? null);
  const reasons: NotifyReason[] = [];
  const failures: unknown[] = [];
  const unnotified: UnnotifiedResolve[] = [];
  const unsent: AlertSpike[] = [];
  const fail = (spikeId: number, thrown: unknown) => {
    failures.push(thrown);
    log.error({ err: thrown, spikeId }, "alert not raised");
  };
  for (const spike of deciding) {
    signal.throwIfAborted();
    const members = membersOf.get(spike.id) ?? [];
    try {
      // Decided without a lock: in most runs most spikes have no transition.
      const decided = decideOn(spike);
      const { alert, assessment, decision } = decided;
      if (waits(decided)) continue;
      const row = alerts.get(alertOf(spike))?.row ?? null;
      const isChanged =
        decision !== null ||
        (row !== null && alert !== null && isOutdated(row, alert, { assessment, members }));
      if (!isChanged) continue;
      const resolve =
        row === null || alert === null ? null : toUnnotifiedResolve(row, alert, spike, decision);
      if (resolve !== null) unnotified.push(resolve);
      else if (row === null && spike.closedAtMs === null && members.length === 0 && isUnsent(decision))
        unsent.push(spike);
      else reasons.push(...(await raiseSpike(database, { spike, members }, context, assess)));
    } catch (thrown) {
      fail(spike.id, thrown);
    }
  }
  for (let start = 0; start < unsent.length; start += UNSENT_AT_ONCE) {
    signal.throwIfAborted();
    const some = unsent.slice(start, start + UNSENT_AT_ONCE);
    try {
      const raised = await raiseUnsent(database, some, context, assess);
      reasons.push(...Array<NotifyReason>(raised).fill("first"));
    } catch {
      for (const spike of some)
        await raiseSpike(database, { spike, members: [] }, context, assess).then(
          (raised) => reasons.push(...raised),
          (thrown: unknown) => fail(spike.id, thrown),
        );
    }
  }
  const resolved =
    unnotified.length === 0 ? 0 : await resolveUnnotified(database.db, unnotified, context.nowMs);
  return { reasons: [...reasons, ...Array<NotifyReason>(resolved).fill("resolved")], failures };
}

/**
 * Returns the resolve of an alert that no channel was notified of. Such alerts are resolved in a few statements,
 * because a flood leaves thousands of them. Null for any other decision.
 */
function toUnnotifiedResolve(
  row: AlertRow,
  before: AlertRecord,
  spike: AlertSpike,
  decision: Decision | null,
): UnnotifiedResolve | null {
  if (decision === null || !isEnding(decision.reason) || row.spikeId !== spike.id) return null;
  if (notifiedChannels(before).size > 0) return null;
  const { state, transition, transitions } = decision.alert;
  const changed = {
    state,
    transition,
    reason: decision.reason,
    endedAt: spike.closedAtMs,
    headline: headlineOf(spike, state),
  };
  return { id: row.id, seen: row.transition, entry: transitions.at(-1), changed };
}

function countEach(reasons: readonly NotifyReason[]): Partial<Record<NotifyReason, number>> {
  const counts: Partial<Record<NotifyReason, number>> = {};
  for (const reason of reasons) counts[reason] = (counts[reason] ?? 0) + 1;
  return counts;
}
