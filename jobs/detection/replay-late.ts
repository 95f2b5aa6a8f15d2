import type { Database } from "#db/client.ts";
import { readSourceEvents, SLICE_EVENTS } from "#db/detection/source-events.ts";
import { readMinuteCounts, type SpikeRow } from "#db/detection/spikes.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { KnownSources } from "#model/known-source.ts";
import { keyOf, type SeriesKey } from "#model/series-key.ts";
import { assessSeries } from "#stages/detection/assess-series.ts";
import { toAttackHours } from "#stages/detection/backtest/attack-hours.ts";
import type { Episode } from "#stages/detection/episode.ts";
import type { RuleFinding } from "#stages/detection/late/find-late-news.ts";
import { planTick, spanOfTick, TESTED_MINUTES, type TickInput } from "#stages/detection/plan-tick.ts";
import type { FiredMinute } from "#stages/detection/sources/judge-sources.ts";
import { toMinute } from "#stages/detection/stored-episode.ts";
import { createThresholdCache } from "#stages/detection/thresholds/threshold-cache.ts";
import { LONGEST_WINDOW } from "#stages/detection/thresholds/windows.ts";
import { viewZone, type ZoneHour } from "#stages/detection/zone-view.ts";
import { type CountBudget, countSourceHours, readUsual } from "./count-source-hours.ts";
import { fillThresholds, thresholdsKey } from "./fill-thresholds.ts";
import { closeUntil, createKeptWatch, type KeptWatch, learnHours, takeEvents } from "./kept-watch.ts";

/** Hours [from, to) of a zone, every event of which is stored, and what the detectors know beside them. */
export interface ReplayedHours {
  readonly zoneId: number;
  readonly from: number;
  readonly to: number;
  /** The coverage of these hours and of the week before. */
  readonly covered: readonly (ZoneHour & { readonly zoneId: number })[];
  readonly attacks: TickInput<SeriesKey>["attacks"];
  readonly known: KnownSources;
}

interface OpenRule extends SeriesKey {
  readonly episode: Episode;
  /** The first minute that it was not judged for. */
  readonly next: number;
}

/**
 * Judges the rules of a zone in hours that are over, quarter of an hour by quarter, as ticks would have done with all of
 * their events: the thresholds of each hour come from the hours before it. `closed` holds spikes that ended before.
 */
export async function replayRules(
  database: Database,
  { zoneId, from, to, covered, attacks }: ReplayedHours,
  {
    closed,
    atLeast,
    sensitivityOf,
  }: {
    readonly closed: readonly SpikeRow[];
    readonly atLeast: number;
    readonly sensitivityOf: TickInput<SeriesKey>["sensitivityOf"];
  },
): Promise<RuleFinding[]> {
  const { db } = database;
  const first = spanOfTick((from * 60 + TESTED_MINUTES) * MINUTE_MS).firstMinute;
  const counted = { fromMs: first * MINUTE_MS, toMs: to * HOUR_MS, atLeast, zoneId };
  const counts = (await readMinuteCounts(db, counted)).map((one) => ({ ...one, at: 0 }));
  const closings = new Map<string, SeriesKey & { closedAtMs: number }>();
  for (const { ruleId, closedAt } of closed)
    if (closedAt !== null)
      closings.set(keyOf({ zoneId, ruleId }), { zoneId, ruleId, closedAtMs: closedAt.getTime() });
  const cache = createThresholdCache();
  const open = new Map<string, OpenRule>();
  const found: RuleFinding[] = [];
  for (let end = from * 60 + TESTED_MINUTES; end <= to * 60; end += TESTED_MINUTES) {
    const span = spanOfTick(end * MINUTE_MS);
    const active = counts.map((one) => {
      while ((one.minutes[one.at] ?? end) < span.firstMinute) one.at += 1;
      let last = one.at;
      while ((one.minutes[last] ?? end) < end) last += 1;
      return { ...one, minutes: one.minutes.slice(one.at, last), counts: one.counts.slice(one.at, last) };
    });
    const candidates = planTick<OpenRule>(span, {
      active: active.filter(({ counts: some }) => some.reduce((sum, count) => sum + count, 0) >= atLeast),
      open: [...open.values()],
      closings: [...closings.values()],
      stale: [],
      covered: covered.filter(({ startsAtMs }) => startsAtMs < span.nowMs),
      attacks,
      sensitivityOf,
    });
    await fillThresholds(db, { span, candidates }, cache);
    cache.prune(span.nowMs);
    for (const candidate of candidates) {
      // The running minute of a tick is judged by the next one.
      const { running: _, ...judged } = candidate;
      const { ruleId, row } = candidate;
      const key = keyOf(candidate);
      let { tested, freshFrom } = candidate;
      let left: Pick<OpenRule, "episode" | "next"> | undefined = row;
      while (tested.length > 0) {
        const { episode, closedAt } = assessSeries({
          ...judged,
          tested,
          freshFrom,
          firstMinute: span.firstMinute,
          episode: left?.episode ?? null,
          firstUnjudged: left?.next ?? 0,
          thresholdsOf: (hour) => cache.get(thresholdsKey(candidate, hour), span.nowMs),
        });
        left =
          episode === null || closedAt !== null ? undefined : { episode, next: (tested.at(-1) ?? 0) + 1 };
        if (episode === null || closedAt === null) break;
        found.push({ zoneId, ruleId, episode, closedAt });
        closings.set(key, { zoneId, ruleId, closedAtMs: closedAt * MINUTE_MS });
        freshFrom = closedAt;
        tested = tested.filter((minute) => minute >= closedAt);
      }
      if (left === undefined) open.delete(key);
      else open.set(key, { zoneId, ruleId, ...left });
    }
  }
  for (const { ruleId, episode } of open.values()) found.push({ zoneId, ruleId, episode, closedAt: null });
  return found;
}

/**
 * Judges the source series of a zone in hours that are over, one after the other. Returns the minutes in which keys fired;
 * null if hours of the history have still to be counted.
 */
export async function replaySourceHours(
  database: Database,
  { zoneId, from, to, covered, attacks, known }: ReplayedHours,
  budget: CountBudget,
): Promise<FiredMinute[] | null> {
  const { isUnknownHour, fingerprint } = viewZone(covered, to * HOUR_MS);
  const policy = { isUnknownHour, attackHours: toAttackHours(attacks), fingerprint };
  const fired: FiredMinute[] = [];
  let one: KeptWatch | null = null;
  for (let hour = from; hour < to; hour += 1) {
    const asked = { zoneId, nowHour: hour, known, policy };
    const all = (await countSourceHours(database, [asked], budget)).get(zoneId);
    if (all === undefined || all.missing.some((missing) => missing < hour - 1)) return null;
    // A later hour must not push an old one out of the history.
    const hours = { ...all, hours: all.hours.filter((counted) => counted.hour < hour) };
    const [start, end] = [hour * 60, hour * 60 + 60];
    if (one === null) {
      const next = start - LONGEST_WINDOW + 1;
      one = createKeptWatch(zoneId, { known, policy, next, version: { text: "", readIn: hour } }, hours);
    } else learnHours(one, hours);
    const day = Math.floor(hour / 24);
    if (one.usualDay !== day) {
      one.usual = await readUsual(database.db, zoneId, day);
      one.usualDay = day;
    }
    for await (const slice of readSourceEvents(database.db, { zoneId, from: one.next, to: end }))
      fired.push(...takeEvents(one, slice, { judgeFrom: from * 60, isCut: slice.length >= SLICE_EVENTS }));
    fired.push(...closeUntil(one, end, from * 60));
  }
  return fired;
}

/** Returns the hour from which hours are judged again: a spike that was open at the beginning of `from` has to open again. */
export function firstReplayed(rows: readonly SpikeRow[], from: number, mostHours: number): number {
  const isOpen = ({ openedAt, closedAt }: SpikeRow) =>
    toMinute(openedAt) <= from * 60 && (closedAt === null || toMinute(closedAt) > from * 60);
  const opened = rows.filter(isOpen).map(({ openedAt }) => Math.floor((toMinute(openedAt) - 1) / 60));
  return Math.max(Math.min(from, ...opened), from - mostHours);
}
