import { z } from "zod";
import type { Database, Queryable } from "../../db/client.ts";
import { readRuleAddresses } from "../../db/detection/source-events.ts";
import { collectEvidence, noEvidence } from "../../db/detection/spike-evidence.ts";
import {
  openSpike,
  type RuleSpikeRow,
  readAttacks,
  readMinuteCounts,
  readOpenSpikes,
  readRecentClosings,
  readSearchedThrough,
  readStaleSeries,
  type SeriesKey,
  updateSpike,
} from "../../db/detection/spikes.ts";
import { assessSeries, type SeriesOutcome } from "../../src/detection/assess-series.ts";
import type { Episode } from "../../src/detection/episode.ts";
import { type GradedBy, gradeSpike, isGradedByAddresses } from "../../src/detection/grade-spike.ts";
import {
  type Candidate,
  planTick,
  type Sensitivity,
  spanOfTick,
  type TickInput,
  type TickSpan,
} from "../../src/detection/plan-tick.ts";
import { DEFAULT_Z, FLOOR } from "../../src/detection/policy.ts";
import { createRiseCounter } from "../../src/detection/raise-severity.ts";
import { toSourceAddress } from "../../src/detection/sources/source-event.ts";
import {
  isNews,
  isSameEpisode,
  type StoredEpisode,
  toEpisode,
  toMinute,
  toStoredEpisode,
} from "../../src/detection/stored-episode.ts";
import { createThresholdCache, type ThresholdCache } from "../../src/detection/thresholds/threshold-cache.ts";
import { LONGEST_WINDOW } from "../../src/detection/thresholds/windows.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { HOUR_MS, MINUTE_MS } from "../../src/lib/units.ts";
import { type Trace, type TraceSpan, traceSpike } from "../../src/model/spike-trace.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";
import { fillThresholds, thresholdsKey } from "./fill-thresholds.ts";

/** Maximum number of spikes whose evidence is collected in one tick. The next ticks collect the rest. */
const EVIDENCE_PER_TICK = 50;
/** More different addresses than this are not counted: the severity no longer depends on them. */
const COUNTED_ADDRESSES = 200;

export interface DetectSpikesDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the sensitivity for a series. Default: the sensitivity without a configuration. */
  readonly sensitivity?: (zoneId: number, ruleId: string) => Sensitivity;
  /** Returns the lowest of all floors. */
  readonly lowestFloor?: () => number;
  /** Gets the spans of spikes that opened. */
  readonly trace?: Trace | null;
  /** Called when a spike opened, changed or closed. A further quiet minute is no change. */
  readonly afterSpikes: () => unknown;
}

interface OpenedSpike extends ChangedSpike {
  readonly spans: readonly TraceSpan[];
}

interface DetectedSpikes {
  readonly opened: readonly OpenedSpike[];
  readonly updated: readonly ChangedSpike[];
  readonly closed: readonly ChangedSpike[];
}

interface ChangedSpike extends SeriesKey {
  readonly id: number;
}

/**
 * Judges the closed minutes of every active series that ingest has fetched, and opens, updates and closes spikes.
 * Everything is derived from rows, so the next tick makes up for a killed one. Of two concurrent ticks one opens the
 * spike.
 */
export function createDetectSpikesJob(deps: DetectSpikesDeps): AnyJob {
  const cache = createThresholdCache();
  return defineJob({
    name: "detect-spikes",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 120_000,
    async run() {
      const { opened, updated, closed } = await detectSpikes(deps, cache);
      if (opened.length + updated.length + closed.length === 0) return;
      if (opened.length > 0) deps.trace?.(opened.flatMap(({ spans }) => spans));
      const counts = { opened: opened.length, updated: updated.length, closed: closed.length };
      deps.log[opened.length + closed.length > 0 ? "info" : "debug"](counts, "spikes detected");
      await deps.afterSpikes();
    },
  });
}

/** Runs one tick. */
async function detectSpikes(
  deps: Pick<DetectSpikesDeps, "database" | "clock" | "sensitivity" | "lowestFloor">,
  cache: ThresholdCache = createThresholdCache(),
): Promise<DetectedSpikes> {
  const { db } = deps.database;
  const nowMs = deps.clock();
  const { sensitivity = () => ({ z: DEFAULT_Z, floor: FLOOR }), lowestFloor = () => FLOOR } = deps;
  const tick = await readTick(db, nowMs, { sensitivityOf: sensitivity, atLeast: lowestFloor() });
  await fillThresholds(db, tick, cache);
  cache.prune(nowMs);
  const assessed = tick.candidates.flatMap((candidate) => assess(tick, candidate, cache));
  const graded: Assessed[] = [];
  for (const one of assessed.map(compareWithin(assessed))) graded.push(await grade(db, one));
  return writeOutcomes(db, tick, graded);
}

type OpenSpike = Candidate<RuleSpikeRow>;

interface Tick {
  readonly span: TickSpan;
  readonly candidates: readonly OpenSpike[];
}

async function readTick(
  db: Queryable,
  nowMs: number,
  { sensitivityOf, atLeast }: Pick<TickInput<RuleSpikeRow>, "sensitivityOf"> & { atLeast: number },
): Promise<Tick> {
  const span = spanOfTick(nowMs);
  const { oldestMs, settledMs } = span;
  const [fromMs, toMs] = [span.firstMinute * MINUTE_MS, span.endMinute * MINUTE_MS];
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
  };
}

const NOT_GRADED = { addresses: null, gradedBy: null };

interface Assessed extends SeriesOutcome {
  readonly candidate: OpenSpike;
  readonly episode: Episode;
  readonly companions: number;
  readonly addresses: number | null;
  readonly gradedBy: GradedBy | null;
}

function assess({ span }: Tick, candidate: OpenSpike, cache: ThresholdCache): Assessed[] {
  const { row } = candidate;
  const { episode, closedAt } = assessSeries({
    ...candidate,
    firstMinute: span.firstMinute,
    episode: row === undefined ? null : toEpisode(row),
    firstUnjudged: row === undefined ? 0 : toMinute(row.judgedThrough),
    thresholdsOf: (hour) => cache.get(thresholdsKey(candidate, hour), span.nowMs),
  });
  return episode === null ? [] : [{ episode, closedAt, candidate, companions: 0, ...NOT_GRADED }];
}

/** Returns a function that counts, for a spike, the other rules of its zone that rose with it. */
function compareWithin(assessed: readonly Assessed[]): (one: Assessed) => Assessed {
  const zones = Map.groupBy(assessed, ({ candidate }) => candidate.zoneId);
  const companies = new Map(
    [...zones].map(([zoneId, inZone]) => [zoneId, createRiseCounter(inZone.map(({ episode }) => episode))]),
  );
  return (one) => {
    const { row, zoneId } = one.candidate;
    const rising = companies.get(zoneId)?.(one.episode) ?? 0;
    // Includes those that have closed by now.
    return { ...one, companions: Math.max(rising, row?.companions ?? 0) };
  };
}

/** Grades a spike by its score, its company and, where it depends on them, its different addresses. */
async function grade(db: Queryable, one: Assessed): Promise<Assessed> {
  const { row, zoneId, ruleId, z, tested } = one.candidate;
  const { score, windowMinutes, count } = one.episode;
  const strength = { score, z, companions: one.companions };
  let addresses = row?.addresses ?? null;
  if (count > 0 && isGradedByAddresses(strength) && (addresses ?? 0) < COUNTED_ADDRESSES) {
    const to = (tested.at(-1) ?? 0) + 1;
    const scope = { zoneId, ruleId, from: to - windowMinutes, to, limit: COUNTED_ADDRESSES };
    const found = new Set((await readRuleAddresses(db, scope)).map(toSourceAddress)).size;
    if (found > 0) addresses = Math.max(addresses ?? 0, found);
  }
  const { severity, gradedBy } = gradeSpike({ ...strength, addresses, before: row?.severity });
  return { ...one, addresses, gradedBy, episode: { ...one.episode, severity } };
}

async function writeOutcomes(
  db: Queryable,
  tick: Tick,
  assessed: readonly Assessed[],
): Promise<DetectedSpikes> {
  const detected = {
    opened: [] as OpenedSpike[],
    updated: [] as ChangedSpike[],
    closed: [] as ChangedSpike[],
  };
  let evidenceLeft = EVIDENCE_PER_TICK;
  for (const one of assessed.toSorted(byUrgency)) {
    const { zoneId, ruleId, row, tested } = one.candidate;
    const stored = toStoredEpisode(one, tested.at(-1) ?? 0);
    if (row !== undefined && hasEvidence(row) && isSameEpisode(row, stored)) continue;
    const scope = evidenceScope(tick, one);
    const isCollected = evidenceLeft > 0 && needsEvidence(one, stored, scope.toMs);
    if (isCollected) evidenceLeft -= 1;
    const evidence = isCollected ? { evidence: await collectEvidence(db, scope) } : {};
    if (row === undefined) {
      const opening = { zoneId, ruleId, ...stored, evidence: noEvidence(scope), ...evidence };
      const id = await openSpike(db, opening);
      if (id !== null) detected.opened.push({ id, zoneId, ruleId, spans: toSpans(opening, tick) });
    } else {
      const isStored = await updateSpike(db, row.id, { ...stored, ...evidence });
      if (!isStored || !(isCollected || isNews(row, stored))) continue;
      const list = one.closedAt === null ? detected.updated : detected.closed;
      list.push({ id: row.id, zoneId, ruleId });
    }
  }
  return detected;
}

function toSpans(
  { zoneId, ruleId, openedAt, windowMinutes, windowCount }: SeriesKey & StoredEpisode,
  { span: { nowMs } }: Tick,
): TraceSpan[] {
  const spike = { zoneId, ruleId, openedAt: openedAt.getTime() };
  return traceSpike(spike, { windowMinutes, events: windowCount, detectedAt: nowMs });
}

function hasEvidence({ evidence }: RuleSpikeRow): boolean {
  return evidence.sampled > 0;
}

/**
 * Returns whether evidence has to be collected. Of an active spike it is when a tenth of the spike's age has passed since,
 * at most six minutes, because counting 20,000 events takes Postgres a third of a second; or when the severity has
 * changed. Not while the spike is declining, because on-call needs the events of the attack.
 */
function needsEvidence(
  { candidate: { row } }: Assessed,
  { lastActiveAt, openedAt, severity }: StoredEpisode,
  toMs: number,
): boolean {
  if (row === undefined || !hasEvidence(row)) return true;
  if (lastActiveAt <= row.lastActiveAt) return false;
  const age = Math.min(toMs - openedAt.getTime(), HOUR_MS);
  return severity !== row.severity || toMs - Date.parse(row.evidence.to) >= age / 10;
}

/** Orders new spikes first, then those without evidence, the strongest of each first. */
function byUrgency(one: Assessed, other: Assessed): number {
  const rank = ({ candidate: { row } }: Assessed) => (row === undefined ? 0 : hasEvidence(row) ? 2 : 1);
  return rank(one) - rank(other) || other.episode.score - one.episode.score;
}

/** Returns the time before which no event can be part of an open spike. */
function windowStartMs({ openedAt }: Pick<RuleSpikeRow, "openedAt">): number {
  return openedAt.getTime() - LONGEST_WINDOW * MINUTE_MS;
}

/**
 * Returns the scope of the evidence: from the beginning of the spike's window, at most the last hour, without minutes
 * that a previous spike has reported.
 */
function evidenceScope({ span }: Tick, { episode, candidate }: Assessed) {
  const { zoneId, ruleId, counts, tested, freshFrom } = candidate;
  const endMinute = (tested.at(-1) ?? 0) + 1;
  const sinceMs = Math.max(episode.openedAt - episode.windowMinutes, freshFrom) * MINUTE_MS;
  const toMs = endMinute * MINUTE_MS;
  const end = endMinute - span.firstMinute;
  const sparkline = Array.from(counts.subarray(end - LONGEST_WINDOW, end));
  return { zoneId, ruleId, fromMs: Math.max(sinceMs, toMs - HOUR_MS), toMs, sinceMs, sparkline };
}
