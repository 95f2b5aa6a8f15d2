import { z } from "zod";
import { clausesOf } from "#archive/rules/query/custom-conditions.ts";
import type { Queryable } from "#db/client.ts";
import { readChangedMinutes } from "#db/delivery/forwarding/forward-cursors.ts";
import {
  countBySearch,
  listCountedZones,
  listCustomConditions,
  lockCountedZone,
  readConditionSpikes,
  readConditionsVersion,
  readCountedMinutes,
  removeCountedZone,
  removeCounts,
  storeCountedZone,
} from "#db/detection/custom-conditions.ts";
import { collectEvidence, noEvidence } from "#db/detection/spike-evidence.ts";
import { openSpike, readSearchedThrough, updateSpike } from "#db/detection/spikes.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { type Firing, findFirings, viewSilence } from "#detection/rules/find-firings.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import {
  type CustomCondition,
  conditionRule,
  isOfZone,
  MOST_CONDITIONS,
  MOST_DISTINCT,
} from "#model/custom-condition.ts";
import { type AnyJob, defineJob, oneAtATime } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import {
  type Counter,
  countRun,
  countsOf,
  mergeConditions,
  startOfMinute,
  toPlan,
  toRuns,
  type ZonePlan,
  type ZoneTurn,
} from "./count-conditions.ts";

/** Late events still raise an alert of a window that ended so long ago: Longwatch may have been down for a night. */
const LATE_MS = DAY_MS;
/** Searches and changed minutes of one transaction. */
const SEARCHES_PER_TURN = 20;
const MINUTES_PER_TURN = 60;
const SPARKLINE_MINUTES = 60;
const EVIDENCE_EVERY_MS = 5 * MINUTE_MS;
/** Spikes of one turn whose evidence is collected, which takes Postgres some 30 ms each. The others follow in later turns. */
const EVIDENCE_PER_TURN = 10;

export interface JudgeConditionsDeps
  extends Pick<JobContext, "database" | "clock" | "log" | "zoneIds" | "afterSpikes" | "conditions"> {}

/**
 * Counts what custom conditions find, minute by minute, and opens and closes their spikes. A changed minute is counted anew, so
 * counts are a function of the events, and a late event counts in the minute in which it happened. Counts, spikes and the number of
 * the last counted change are one transaction under the lock of the zone: replicas do nothing twice, and a killed run has done nothing.
 */
export function createJudgeConditionsJob(deps: JudgeConditionsDeps): AnyJob {
  const { database, clock, zoneIds } = deps;
  const readPlans = createPlans(deps);
  /** The plan and the minute of the last visit of each zone. Losing it costs a visit. */
  const visited = new Map<number, { readonly plan: ZonePlan; readonly minute: number }>();
  return defineJob({
    name: "judge-conditions",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 300_000,
    run: oneAtATime(async (_payload, signal) => {
      const planOf = await readPlans();
      const counted = await listCountedZones(database.db);
      let changed = 0;
      for (const zoneId of zoneIds) {
        const plan = planOf(zoneId);
        const [last, minute] = [visited.get(zoneId), Math.floor(clock() / MINUTE_MS)];
        const waitsForTime =
          plan.conditions.some(({ moreThan }) => moreThan === null) && last?.minute !== minute;
        const state = counted.get(zoneId);
        if (state === undefined && plan.conditions.length === 0) continue;
        const isSame = last?.plan === plan && !waitsForTime && state !== undefined;
        if (isSame && !state.hasChanged && !state.holds) continue;
        for (let isBehind = true; isBehind; ) {
          signal.throwIfAborted();
          const turn = await inTransaction(database, ({ tx }) => judgeZone(tx, { zoneId, plan, clock }));
          ({ isBehind } = turn);
          if (turn.changed === 0) continue;
          changed += turn.changed;
          await deps.afterSpikes();
        }
        visited.set(zoneId, { plan, minute });
      }
      if (changed === 0) return "no custom condition began or ended";
      return undefined;
    }),
  });
}

/** Returns a function that reads the conditions, and plans them anew only if one was added or removed. */
function createPlans({ database: { db }, conditions, log }: JudgeConditionsDeps) {
  let known = { name: "", all: [] as readonly CustomCondition[], plans: new Map<number, ZonePlan>() };
  return async (): Promise<(zoneId: number) => ZonePlan> => {
    const fromFile = conditions();
    const name = `${await readConditionsVersion(db)} ${JSON.stringify(fromFile)}`;
    if (name !== known.name) {
      const all = mergeConditions(fromFile, await listCustomConditions(db));
      const left = all.length - MOST_CONDITIONS;
      if (left > 0)
        log.warn({ conditions: all.length, left }, "custom conditions beyond the limit not judged");
      known = { name, all: all.slice(0, MOST_CONDITIONS), plans: new Map() };
    }
    const { all, plans } = known;
    return (zoneId) => {
      const plan = plans.get(zoneId) ?? toPlan(all.filter((one) => isOfZone(one, zoneId)));
      plans.set(zoneId, plan);
      return plan;
    };
  };
}

/** Returns how many spikes opened, changed or closed, and whether further changes wait. */
async function judgeZone(tx: Queryable, turn: ZoneTurn): Promise<{ changed: number; isBehind: boolean }> {
  const { zoneId, plan, clock } = turn;
  const zone = await lockCountedZone(tx, zoneId);
  if (zone === null) return { changed: 0, isBehind: false };
  const nowMs = clock();
  if (plan.conditions.length === 0) {
    const changed = await judgeCounts(tx, turn, { nowMs, longest: 0, isBehind: false });
    await removeCountedZone(tx, zoneId);
    return { changed, isBehind: false };
  }
  const nameOf = ({ counts, withinMinutes }: Counter) => `${counts}/${withinMinutes}`;
  const known = new Set(zone.counted);
  const fresh = plan.counters.filter((counter) => !known.has(nameOf(counter)));
  for (const counter of fresh.slice(0, SEARCHES_PER_TURN)) {
    known.add(nameOf(counter));
    const lateMs = counter.isAbsence ? LATE_MS : 0;
    const fromMs = startOfMinute(nowMs) - lateMs - (counter.withinMinutes - 1) * MINUTE_MS;
    await countBySearch(tx, zoneId, { ...counter, most: MOST_DISTINCT + 1, fromMs, toMs: nowMs });
  }
  const counted = plan.counters.map(nameOf).filter((name) => known.has(name));
  const longest = Math.max(0, ...plan.conditions.map(({ withinMinutes }) => withinMinutes));
  const since = startOfMinute(nowMs - LATE_MS - longest * MINUTE_MS);
  const asked = { seq: zone.seq, since, limit: MINUTES_PER_TURN };
  const minutes = await readChangedMinutes(tx, zoneId, asked);
  for (const run of toRuns(minutes.map(({ minute }) => minute))) await countRun(tx, turn, run);
  const isBehind = fresh.length > SEARCHES_PER_TURN || minutes.length === MINUTES_PER_TURN;
  const seq = minutes.at(-1)?.seq ?? zone.seq;
  const isNew = seq !== zone.seq || counted.join() !== zone.counted.join();
  if (isNew) await storeCountedZone(tx, { zoneId, seq, counted });
  if (isNew && !isBehind) {
    const keptFrom = (one: Counter) => nowMs - LATE_MS - one.withinMinutes * MINUTE_MS;
    const kept = plan.counters.map((one) => ({ counts: one.counts, fromMs: keptFrom(one) }));
    await removeCounts(tx, zoneId, kept);
  }
  return { changed: await judgeCounts(tx, turn, { nowMs, longest, isBehind }), isBehind };
}

type ConditionSpike =
  Awaited<ReturnType<typeof readConditionSpikes>> extends ReadonlyMap<string, infer Row> ? Row : never;

/** Opens, updates and closes the spikes of the zone's conditions. Returns how many. */
async function judgeCounts(
  tx: Queryable,
  { zoneId, plan }: ZoneTurn,
  { nowMs, longest, isBehind }: { nowMs: number; longest: number; isBehind: boolean },
): Promise<number> {
  const fromMs = nowMs - LATE_MS;
  const rows = await readCountedMinutes(tx, zoneId, fromMs - longest * MINUTE_MS);
  const spikes = await readConditionSpikes(tx, zoneId, fromMs);
  const span = { fromMs: fromMs - longest * MINUTE_MS, nowMs };
  const hours = { afterMs: span.fromMs - HOUR_MS, untilMs: nowMs, zoneId };
  const silence = plan.conditions.some(({ moreThan }) => moreThan === null)
    ? viewSilence(await readSearchedThrough(tx, hours), span)
    : null;
  let changed = 0;
  const evidence = { left: EVIDENCE_PER_TURN };
  for (const condition of plan.conditions) {
    const isAbsence = condition.moreThan === null;
    if (isAbsence && isBehind) continue;
    const spike = spikes.get(conditionRule(condition)) ?? null;
    const openedMs = spike?.closedAt === null ? spike.openedAt.getTime() : Number.POSITIVE_INFINITY;
    const counted = (rows.get(countsOf(condition)) ?? []).map(({ minuteMs, ...one }) => {
      return { ...one, minute: minuteMs / MINUTE_MS };
    });
    const minutes = isAbsence ? [...counted, ...(silence?.unknown ?? [])] : counted;
    // An event ends an absence, also while the newest minutes are not all known.
    const last = counted.reduce((latest, { minute }) => Math.max(latest, minute), 0);
    if (isAbsence && silence === null && (last + 1) * MINUTE_MS < openedMs) continue;
    const to = isAbsence ? Math.max(silence?.through ?? 0, last + 1) : Math.floor(nowMs / MINUTE_MS) + 1;
    const from = Math.floor(fromMs / MINUTE_MS) - (isAbsence ? condition.withinMinutes : 0);
    const firings = findFirings(minutes, condition, { from, to });
    // An absence that was over before the latest one is told as over.
    const own = isAbsence
      ? firings.find((one) => one.to === null || one.to * MINUTE_MS >= openedMs)
      : undefined;
    const firing = own ?? firings.at(-1) ?? null;
    // Minutes that are not counted yet could only add to what holds.
    if (isBehind && (spike?.closedAt === null || firing?.to !== null)) continue;
    const given = { zoneId, condition, firing, spike, counted, nowMs, evidence };
    changed += Number(
      spike?.closedAt === null ? await goOn(tx, { ...given, spike }) : await begin(tx, given),
    );
  }
  const known = new Set(plan.conditions.map(conditionRule));
  for (const [ruleId, { id, closedAt }] of spikes)
    if (closedAt === null && !known.has(ruleId))
      changed += Number(
        await updateSpike(tx, id, { closedAt: new Date(nowMs), judgedThrough: new Date(nowMs) }),
      );
  return changed;
}

interface Judged {
  readonly zoneId: number;
  readonly condition: CustomCondition;
  /** The latest time in which it held; null if it never did. */
  readonly firing: Firing | null;
  readonly spike: ConditionSpike | null;
  readonly counted: readonly { readonly minute: number; readonly count: number }[];
  readonly nowMs: number;
  /** How many more spikes get evidence in this turn. */
  readonly evidence: { left: number };
}

function toStored({ condition, firing, nowMs }: Judged & { readonly firing: Firing }) {
  const { moreThan, withinMinutes: windowMinutes, severity } = condition;
  const closedAt = firing.to === null ? null : new Date(firing.to * MINUTE_MS);
  return {
    condition,
    severity,
    windowMinutes,
    windowCount: firing.count,
    peak: firing.peak,
    // There is nothing usual: the person has said from which count on.
    baseline: 0,
    threshold: moreThan === null ? 0 : moreThan + 1,
    score: 0,
    lastActiveAt: new Date(Math.min((firing.lastActive + 1) * MINUTE_MS, nowMs)),
    judgedThrough: new Date(nowMs),
    closedAt,
  };
}

/** Opens a spike if the condition holds, or held after the end of its last spike. That events were absent is no news when they are back. */
async function begin(tx: Queryable, judged: Judged): Promise<boolean> {
  const { zoneId, condition, firing, spike, nowMs } = judged;
  const closedMs = spike?.closedAt?.getTime() ?? 0;
  if (firing === null) return false;
  const isOver = firing.to !== null;
  if (isOver && (condition.moreThan === null || (firing.to ?? 0) * MINUTE_MS <= closedMs)) return false;
  const openedAt = new Date(Math.max(Math.min((firing.from + 1) * MINUTE_MS, nowMs), closedMs + 1));
  const evidence = await readEvidence(tx, { ...judged, firing });
  const stored = toStored({ ...judged, firing: isOver ? { ...firing, count: firing.peak } : firing });
  const opened = {
    zoneId,
    ruleId: conditionRule(condition),
    kind: "custom-condition" as const,
    openedAt,
    evidence,
  };
  return (await openSpike(tx, { ...stored, ...opened })) !== null;
}

/** Updates an open spike, and closes it when its condition no longer holds. Returns whether people see a change. */
async function goOn(tx: Queryable, judged: Judged & { readonly spike: ConditionSpike }): Promise<boolean> {
  const { firing, spike, nowMs } = judged;
  if (firing === null) {
    const now = new Date(nowMs);
    return updateSpike(tx, spike.id, { windowCount: 0, closedAt: now, judgedThrough: now });
  }
  const stored = toStored({ ...judged, firing });
  const peak = Math.max(stored.peak, spike.peak);
  const { evidence: known } = spike;
  const age = stored.lastActiveAt.getTime() - Date.parse(known.to);
  const isOld =
    judged.evidence.left > 0 && (age >= EVIDENCE_EVERY_MS || (known.sampled === 0 && stored.threshold > 0));
  const evidence = isOld ? { evidence: await readEvidence(tx, { ...judged, firing }) } : {};
  const closedAt =
    stored.closedAt === null ? null : new Date(Math.max(stored.closedAt.getTime(), spike.openedAt.getTime()));
  const isSame = closedAt === null && stored.windowCount === spike.windowCount && peak === spike.peak;
  if (isSame && !isOld) return false;
  return updateSpike(tx, spike.id, { ...stored, peak, closedAt, ...evidence });
}

/** Returns what the events of the window have in common; nothing for an absence. */
async function readEvidence(
  tx: Queryable,
  { zoneId, condition, firing, counted, nowMs, evidence }: Judged & { readonly firing: Firing },
) {
  const end = firing.lastActive + 1;
  const countAt = new Map(counted.map(({ minute, count }) => [minute, count]));
  const sparkline = Array.from(
    { length: SPARKLINE_MINUTES },
    (_, index) => countAt.get(end - SPARKLINE_MINUTES + index) ?? 0,
  );
  const fromMs = (end - condition.withinMinutes) * MINUTE_MS;
  const toMs = Math.min(end * MINUTE_MS, nowMs);
  const scope = { zoneId, ruleId: conditionRule(condition), fromMs, toMs, sinceMs: fromMs, sparkline };
  if (condition.moreThan === null || evidence.left === 0) return noEvidence(scope);
  evidence.left -= 1;
  return collectEvidence(tx, { ...scope, clauses: clausesOf(condition) });
}
