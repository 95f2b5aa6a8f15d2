import { listKnownSources, toKnownSource } from "#db/detection/exclusions.ts";
import {
  readSourceState,
  toMinuteTotals,
  toOldHours,
  toRecentHours,
  type ZoneState,
} from "#db/detection/source-state.ts";
import { readAttacks, readClosedSources, readOpenSources, type SpikeRow } from "#db/detection/spikes.ts";
import { spanOfTick, type TickSpan } from "#detection/rules/assess-series.ts";
import { toAttackHours } from "#detection/rules/backtest/backtest.ts";
import { LONGEST_WINDOW } from "#detection/rules/detection-settings.ts";
import { readThrough, viewZone, type ZoneHour, type ZoneView } from "#detection/rules/zone-view.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createKnownSources, type KnownSources } from "#model/known-source.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import type { JobContext } from "../context.ts";
import { firstHourOf, type HourPolicy } from "./count-source-hours.ts";

/** Hours whose coverage may change from tick to tick. Older ones are read again only when they have changed. */
const RECENT_HOURS = 3;

export type ReadTickDeps = Pick<JobContext, "database" | "clock" | "sourceMode" | "knownSources">;

/** The rows that all zones of a tick share. */
export interface SourceTick {
  readonly isShadow: boolean;
  readonly span: TickSpan;
  /** Changes with every erasure. */
  readonly erasures: string;
  /** Zones that have hours to count from their events. */
  readonly stale: readonly number[];
  readonly views: ReadonlyMap<number, ZoneView>;
  /** The open incidents of each zone, and those that closed lately. */
  readonly open: ReadonlyMap<number, readonly SpikeRow[]>;
  readonly former: ReadonlyMap<number, readonly SpikeRow[]>;
  readonly attacks: ReadonlyMap<number, Parameters<typeof toAttackHours>[0]>;
  readonly totals: ReadonlyMap<number, ReadonlyMap<number, number>>;
  /** The events of the running minute that the roll-up has counted in each zone. */
  readonly running: ReadonlyMap<number, number>;
  /** Returns the known sources of a zone, read once in a minute: a change makes a watch anew at most once in it. */
  readonly known: ReturnType<typeof createKnownSources>;
}

/** A zone with minutes to judge. */
export interface DueZone {
  readonly zoneId: number;
  readonly through: number;
  readonly nowHour: number;
  /** Minutes before this were judged. */
  readonly judged: number;
  readonly open: readonly SpikeRow[];
  readonly former: readonly SpikeRow[];
  readonly known: KnownSources;
  readonly policy: HourPolicy;
}

/** The older hours of zones, as they were last read. */
export type OldHours = Map<number, { readonly text: string | null; readonly hours: readonly ZoneHour[] }>;

/**
 * Reads what a pass needs. Of the passes of one minute, the first reads what is the same for all. The others read the newest
 * hours again, because the search of some zones passes the end of the minute only then.
 */
export async function readTick(
  deps: ReadTickDeps,
  oldHours: OldHours,
  before: SourceTick | null,
): Promise<SourceTick> {
  const { database } = deps;
  const { db } = database;
  const span = spanOfTick(deps.clock());
  const { oldestMs, nowMs, firstTested, firstMinute, endMinute } = span;
  const closedAfterMs = firstMinute * MINUTE_MS;
  const nowHour = Math.floor(nowMs / HOUR_MS);
  const recentHour = nowHour - RECENT_HOURS + 1;
  const isSameMinute = before?.span.endMinute === endMinute;
  const state = await readSourceState(database, {
    closedAfterMs,
    coveredAfterMs: isSameMinute ? recentHour * HOUR_MS - 1 : oldestMs,
    nowMs,
    recentHour,
    staleFromHour: firstHourOf(nowHour),
    fromMinute: isSameMinute ? endMinute : firstTested,
    toMinute: endMinute + 1,
  });
  const isSources = ({ ruleId }: { ruleId: string }) => ruleId === SOURCES_RULE;
  const open = state.hasOpen ? await readOpenSources(db) : [];
  const former = state.hasClosed ? await readClosedSources(db, closedAfterMs) : [];
  const spikes = {
    erasures: state.erasures,
    stale: state.stale,
    open: Map.groupBy(open, ({ zoneId }) => zoneId),
    former: Map.groupBy(former, ({ zoneId }) => zoneId),
  };
  const totals = new Map(state.zones.map(({ zoneId, totals }) => [zoneId, toMinuteTotals(totals)]));
  const running = new Map([...totals].map(([zoneId, minutes]) => [zoneId, minutes.get(endMinute) ?? 0]));
  if (isSameMinute) {
    const views = new Map(before.views);
    // A zone whose last full minute could be judged keeps its view.
    for (const zone of state.zones)
      if (views.get(zone.zoneId)?.isTestable(endMinute - 1) !== true)
        views.set(zone.zoneId, viewZone(toHours(zone, oldHours, true), nowMs));
    return { ...before, ...spikes, views, running, span };
  }
  const attacks = state.hasAttacks ? (await readAttacks(db, { afterMs: oldestMs })).filter(isSources) : [];
  const stored = state.hasKnown ? (await listKnownSources(db)).map(toKnownSource) : [];
  return {
    ...spikes,
    isShadow: deps.sourceMode() === "shadow",
    span,
    views: new Map(state.zones.map((zone) => [zone.zoneId, viewZone(toHours(zone, oldHours), nowMs)])),
    attacks: Map.groupBy(attacks, ({ zoneId }) => zoneId),
    totals,
    running,
    known: createKnownSources([...deps.knownSources(), ...stored], nowMs),
  };
}

/** With `isRecent` the older hours were not read, and are those that were read before. */
function toHours({ zoneId, old, recent }: ZoneState, oldHours: OldHours, isRecent = false): ZoneHour[] {
  const before = oldHours.get(zoneId);
  const isKnown = before !== undefined && (isRecent || before.text === old);
  const known = isKnown ? before : { text: old, hours: toOldHours(old) };
  oldHours.set(zoneId, known);
  return [...known.hours, ...toRecentHours(recent)];
}

/** Returns what is to be judged of a zone; nothing if it has no new minute. */
export function planZone(tick: SourceTick, zoneId: number): DueZone[] {
  const { span } = tick;
  const view = tick.views.get(zoneId) ?? viewZone([], span.nowMs);
  const through = readThrough(view, span.nowMs, span.endMinute - span.firstTested);
  if (!view.isReady || through === null) return [];
  const attackHours = toAttackHours(tick.attacks.get(zoneId) ?? []);
  const open = tick.open.get(zoneId) ?? [];
  const former = tick.former.get(zoneId) ?? [];
  const times = [...open.map((row) => row.judgedThrough), ...former.map(({ closedAt }) => closedAt)];
  const judged = Math.max(0, ...times.map((time) => Math.floor((time?.getTime() ?? 0) / MINUTE_MS)));
  const nowHour = Math.floor((through - 1) / 60);
  const fingerprint = [view.fingerprint, ...attackHours].join();
  const policy = { isUnknownHour: view.isUnknownHour, attackHours, fingerprint };
  return [{ zoneId, through, nowHour, judged, open, former, known: tick.known(zoneId), policy }];
}

/** Returns the first minute that a new watch reads. */
export function firstToRead({ span }: SourceTick): number {
  return span.firstTested - LONGEST_WINDOW + 1;
}
