import type { Database } from "#db/client.ts";
import { readSourceEvents } from "#db/detection/source-events.ts";
import { readMinuteCounts, type SpikeRow } from "#db/detection/spikes.ts";
import { assessSeries, spread, type TickInput, withoutAttacks } from "#detection/rules/assess-series.ts";
import { toAttackHours } from "#detection/rules/backtest/backtest.ts";
import { LONGEST_WINDOW, type Sensitivity } from "#detection/rules/detection-settings.ts";
import type { RuleFinding } from "#detection/rules/find-late.ts";
import type { FiredMinute } from "#detection/rules/sources/judge-sources.ts";
import { toMinute } from "#detection/rules/stored-episode.ts";
import { createThresholdCache } from "#detection/rules/thresholds/thresholds.ts";
import { viewAfter, viewZone, type ZoneHour, type ZoneView } from "#detection/rules/zone-view.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { keyOf, type SeriesKey } from "#model/fingerprint.ts";
import type { KnownSources } from "#model/known-source.ts";
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

/**
 * Judges the rules of a zone in hours that are over, minute by minute, as ticks would have done with all of their events: the
 * thresholds of each hour come from the hours before it. `closed` holds spikes that ended before. An hour is skipped in which
 * ticks would not have judged the zone, because its history was still being fetched.
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
    readonly sensitivityOf: (zoneId: number, ruleId: string) => Sensitivity;
  },
): Promise<RuleFinding[]> {
  const { db } = database;
  const firstMinute = from * 60 - LONGEST_WINDOW + 1;
  const span = { fromMs: firstMinute * MINUTE_MS, toMs: to * HOUR_MS, atLeast, zoneId };
  const views = new Map<number, ZoneView>();
  for (let hour = from; hour < to; hour += 1) {
    const view = viewAfter(covered, hour);
    if (view.isReady) views.set(hour, view);
  }
  const minutes = Array.from({ length: (to - from) * 60 }, (_, i) => from * 60 + i);
  const tested = minutes.filter((minute) => views.get(Math.floor(minute / 60))?.isTestable(minute));
  if (tested.length === 0) return [];
  const history = viewZone(covered, to * HOUR_MS);
  const attacksOf = Map.groupBy(attacks, keyOf);
  const rules = (await readMinuteCounts(db, span)).map((active) => ({
    ...active,
    ...sensitivityOf(zoneId, active.ruleId),
    ...withoutAttacks(history, attacksOf.get(keyOf(active))),
    testedHours: [...views.keys()],
  }));
  const cache = createThresholdCache();
  const nowMs = to * HOUR_MS;
  await fillThresholds(db, { nowMs, candidates: rules }, cache);
  return rules.flatMap((rule) => {
    const { ruleId, z } = rule;
    const ended = closed.flatMap((one) =>
      one.ruleId === ruleId && one.closedAt ? toMinute(one.closedAt) : [],
    );
    const { past, episode } = assessSeries({
      counts: spread({ firstMinute, endMinute: to * 60 }, rule),
      firstMinute,
      tested,
      episode: null,
      firstUnjudged: 0,
      countFrom: Math.max(0, ...ended),
      z,
      knownOf(hour) {
        const known = cache.get(thresholdsKey(rule, hour), nowMs);
        return known && { ...known, canBeNew: views.get(hour)?.canShowNewRules };
      },
    });
    const found = past.map((one): RuleFinding => ({ zoneId, ruleId, episode: one, closedAt: one.closedAt }));
    return episode === null ? found : [...found, { zoneId, ruleId, episode, closedAt: null }];
  });
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
    for await (const { events, isCut } of readSourceEvents(database.db, { zoneId, from: one.next, to: end }))
      fired.push(...takeEvents(one, events, { judgeFrom: from * 60, isCut }));
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
