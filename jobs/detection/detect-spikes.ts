import { z } from "zod";
import type { Database, Queryable } from "#db/client.ts";
import { type JudgedMinutes, noteRuleMinutes } from "#db/detection/judged-hours.ts";
import { readAddressesOfRules, readHour } from "#db/detection/source-events.ts";
import {
  type RuleSpikeRow,
  readAttacks,
  readMinuteCounts,
  readOpenSources,
  readOpenSpikes,
  readRecentClosings,
  readSearchedThrough,
  readStaleSeries,
} from "#db/detection/spikes.ts";
import { noteRising } from "#db/proof/platform-health.ts";
import {
  assessSeries,
  countSenders,
  gradeSpike,
  planTick,
  spanOfTick,
  spanTested,
  type TickInput,
  type TickSpan,
} from "#detection/rules/assess-series.ts";
import { DEFAULT_Z, FLOOR, LONGEST_WINDOW } from "#detection/rules/detection-settings.ts";
import { findCompared, joinRules } from "#detection/rules/incidents/member-share.ts";
import { toIncident } from "#detection/rules/incidents/stored-incident.ts";
import { toEpisode, toMinute } from "#detection/rules/stored-episode.ts";
import { createThresholdCache, type ThresholdCache } from "#detection/rules/thresholds/thresholds.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { MANY_ADDRESSES } from "#model/ip-address.ts";
import { type AnyJob, defineJob, oneAtATime } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { fillThresholds, thresholdsKey } from "./fill-thresholds.ts";
import { type Assessed, type DetectedSpikes, type OpenSpike, storeSpikes } from "./store-spikes.ts";

export interface DetectSpikesDeps
  extends Pick<JobContext, "database" | "clock" | "log" | "afterSpikes">,
    Partial<Pick<JobContext, "sensitivity" | "lowestFloor">> {}

/**
 * Judges the closed minutes of every active series that ingest has fetched, and the running one as far as it has come.
 * Opens, updates and closes spikes, and notes the zones in which something rises, so that these are polled more often.
 * Everything is derived from rows, so the next tick makes up for a killed one. Of two concurrent ticks one opens the
 * spike.
 */
export function createDetectSpikesJob(deps: DetectSpikesDeps): AnyJob {
  const cache = createThresholdCache();
  let notedMinute = 0;
  return defineJob({
    name: "detect-spikes",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 120_000,
    run: oneAtATime(async () => {
      const { opened, updated, closed, tick } = await detectSpikes(deps, cache);
      if (tick.span.endMinute !== notedMinute) await noteRuleMinutes(deps.database.db, tick.judged());
      notedMinute = tick.span.endMinute;
      if (opened + updated + closed === 0) return "no spike opened, changed or closed";
      deps.log[opened + closed > 0 ? "info" : "debug"]({ opened, updated, closed }, "spikes detected");
      await deps.afterSpikes();
      return undefined;
    }),
  });
}

/** Runs one tick. */
async function detectSpikes(
  deps: DetectSpikesDeps,
  cache: ThresholdCache,
): Promise<DetectedSpikes & { readonly tick: Tick }> {
  const { db } = deps.database;
  const nowMs = deps.clock();
  const { sensitivity = () => ({ z: DEFAULT_Z, floor: FLOOR }), lowestFloor = () => FLOOR } = deps;
  const tick = await readTick(db, nowMs, { sensitivityOf: sensitivity, atLeast: lowestFloor() });
  await fillThresholds(db, { nowMs, candidates: tick.candidates }, cache);
  cache.prune(nowMs);
  const outcomes = tick.candidates.map((candidate) => assess(tick, candidate, cache));
  const rising = outcomes.flatMap(({ isRising, candidate }) => (isRising ? candidate.zoneId : []));
  await noteRising(db, [...new Set(rising)], nowMs);
  const graded = await gradeAll(db, outcomes.flatMap(toEpisodes));
  return { ...(await storeSpikes(db, tick.span, await joinSpikes(deps.database, graded))), tick };
}

interface Tick {
  readonly span: TickSpan;
  readonly candidates: readonly OpenSpike[];
  /** Returns the minutes that the tick judges of each zone, without those of zones that have a series that it skips. */
  readonly judged: () => JudgedMinutes[];
}

async function readTick(
  db: Queryable,
  nowMs: number,
  { sensitivityOf, atLeast }: Pick<TickInput<RuleSpikeRow>, "sensitivityOf"> & { atLeast: number },
): Promise<Tick> {
  const span = spanOfTick(nowMs);
  const { oldestMs, settledMs } = span;
  const [fromMs, toMs] = [span.firstMinute * MINUTE_MS, (span.endMinute + 1) * MINUTE_MS];
  // Marks are read before buckets, so that a roll-up between the two reads is seen as still pending.
  const stale = await readStaleSeries(db, { fromMs: oldestMs, toMs: settledMs });
  const covered = await readSearchedThrough(db, { afterMs: oldestMs, untilMs: nowMs });
  const open = await readOpenSpikes(db);
  const closings = await readRecentClosings(db, Math.min(fromMs, ...open.map(windowStartMs)));
  const attacks = await readAttacks(db, { afterMs: oldestMs });
  const active = await readMinuteCounts(db, { fromMs, toMs, atLeast });
  return {
    span,
    candidates: planTick(span, { active, open, closings, stale, covered, attacks, sensitivityOf }),
    judged: () =>
      [...Map.groupBy(covered, ({ zoneId }) => zoneId)].flatMap(([zoneId, hours]) => {
        const isSkipped = stale.some((one) => one.zoneId === zoneId);
        const tested = isSkipped ? null : spanTested(span, hours);
        return tested === null ? [] : [{ zoneId, ...tested }];
      }),
  };
}

const NOT_GRADED = { addresses: null, mainSenders: null, gradedBy: null, memberOf: null };

function assess({ span }: Tick, candidate: OpenSpike, cache: ThresholdCache) {
  const { row, canBeNew } = candidate;
  const outcome = assessSeries({
    ...candidate,
    firstMinute: span.firstMinute,
    episode: row === undefined ? null : toEpisode(row),
    firstUnjudged: row === undefined ? 0 : toMinute(row.judgedThrough),
    knownOf(hour) {
      const known = cache.get(thresholdsKey(candidate, hour), span.nowMs);
      return known && { ...known, canBeNew };
    },
  });
  return { ...outcome, candidate };
}

/** Returns the episodes that ended and the open one. The row of the open spike is that of the first. */
function toEpisodes({ candidate, past, episode, countedTo }: ReturnType<typeof assess>): Assessed[] {
  const { tested } = candidate;
  const ended = past.map((one) => ({
    episode: one,
    closedAt: one.closedAt,
    countedTo: (tested.at(-1) ?? 0) + 1,
  }));
  const all = episode === null ? ended : [...ended, { episode, closedAt: null, countedTo }];
  return all.map((one, i) => {
    const before = past[i - 1];
    const own =
      before === undefined ? candidate : { ...candidate, row: undefined, countFrom: before.closedAt };
    return { ...NOT_GRADED, ...one, candidate: own };
  });
}

/**
 * Grades spikes by their scores and their different addresses. These are counted until they are enough, and again only if
 * the window has changed since the row was stored.
 */
async function gradeAll(db: Queryable, assessed: readonly Assessed[]): Promise<Assessed[]> {
  const counted = assessed.filter((one) => {
    const { row } = one.candidate;
    if (row !== undefined && one.episode.count === 0) return false;
    const isEnough = (row?.addresses ?? 0) >= MANY_ADDRESSES && (row?.mainSenders ?? 0) >= MANY_ADDRESSES;
    return row === undefined || (!isEnough && !isSameWindow(row, one));
  });
  const scopes = counted.map((one) => {
    const { zoneId, ruleId } = one.candidate;
    return { zoneId, ruleId, from: firstCounted(one), to: one.countedTo };
  });
  const found = await readAddressesOfRules(db, scopes);
  const numbers = new Map(counted.map((one, i) => [one, countSenders(found[i] ?? [])]));
  return assessed.map((one) => {
    const { row, z } = one.candidate;
    // None are found where all are erased: the number that was counted before is kept.
    const senders = numbers.get(one);
    const addresses = Math.max(row?.addresses ?? 0, senders?.addresses ?? 0) || null;
    const mainSenders = Math.max(row?.mainSenders ?? 0, senders?.main ?? 0) || null;
    const { severity, gradedBy } = gradeSpike({
      score: one.episode.score,
      z,
      addresses,
      before: row?.severity,
    });
    return { ...one, addresses, mainSenders, gradedBy, episode: { ...one.episode, severity } };
  });
}

/** Finds the spike whose alert each spike is part of: an incident whose attackers send its events, or a rule with the same cause. */
async function joinSpikes(database: Database, assessed: readonly Assessed[]): Promise<Assessed[]> {
  const before = assessed.map((one) => ({ ...one, memberOf: one.candidate.row?.memberOf ?? null }));
  const alone = before.flatMap((one) => {
    const { row, ruleId, zoneId } = one.candidate;
    const isAlone = one.memberOf === null && one.closedAt === null;
    return isAlone ? [{ one, zoneId, ruleId, id: row?.id ?? null, score: one.episode.score }] : [];
  });
  if (alone.length === 0) return before;
  const rows = Map.groupBy(await readOpenSources(database.db), ({ zoneId }) => zoneId);
  const found = new Map<Assessed, Pick<Assessed, "memberOf" | "lead">>();
  for (const [zoneId, inZone] of Map.groupBy(alone, (rule) => rule.zoneId)) {
    const incidents = (rows.get(zoneId) ?? []).flatMap((row) => {
      // In shadow mode nothing is sent, so an incident cannot stand for a rule.
      const incident = row.isShadow ? null : toIncident(row);
      return incident === null ? [] : [{ ...incident, id: row.id }];
    });
    const end = Math.max(...inZone.map(({ one }) => one.countedTo));
    if (findCompared(inZone, { incidents, end }).length === 0) continue;
    const inHour = await readHour(database.db, zoneId, end - 1);
    const byRule = Map.groupBy(inHour, ({ ruleId }) => ruleId);
    const rules = inZone.map((rule) => {
      const [own, from] = [byRule.get(rule.ruleId) ?? [], firstCounted(rule.one)];
      return { ...rule, events: own.filter(({ minute }) => minute >= from) };
    });
    for (const [{ one }, lead] of joinRules(rules, { incidents, end, inHour })) {
      // The lead that opens in this tick has no id yet.
      const isOpening = "one" in lead && lead.id === null;
      found.set(one, isOpening ? { memberOf: null, lead: lead.one.candidate } : { memberOf: lead.id });
    }
  }
  return before.map((one) => ({ ...one, ...found.get(one) }));
}

/**
 * Returns the first minute of a spike's present window; of a spike that opens, of the window in which it opened. That may be some
 * minutes ago, if late events have opened it.
 */
function firstCounted({ candidate: { row }, episode, countedTo }: Assessed): number {
  const end = row === undefined ? Math.min(episode.openedAt, countedTo) : countedTo;
  return end - episode.windowMinutes;
}

/** Returns whether the events of the spike's window were counted when the row was stored. */
function isSameWindow(row: RuleSpikeRow, { episode, countedTo }: Assessed): boolean {
  const judgedThrough = toMinute(row.judgedThrough);
  const { windowMinutes, count } = episode;
  const isSame = windowMinutes === row.windowMinutes && count === row.windowCount;
  return isSame && judgedThrough === countedTo;
}

/** Returns the time before which no event can be part of an open spike. */
function windowStartMs({ openedAt }: Pick<RuleSpikeRow, "openedAt">): number {
  return openedAt.getTime() - LONGEST_WINDOW * MINUTE_MS;
}
