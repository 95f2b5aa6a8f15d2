import { afterAll, beforeEach } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { spikes } from "#db/schema/spikes.ts";
import { createDetectSourcesJob } from "#jobs/detection/detect-sources.ts";
import { createDetectSpikesJob, type DetectSpikesDeps } from "#jobs/detection/detect-spikes.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { SourceMode } from "#model/kinds.ts";
import type { KnownSource } from "#model/known-source.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { silent } from "../ingest/ingest-support.ts";
import { createRollUp, makeEvent, runJob, storeAll, ZONE } from "./trend-support.ts";

/** The minute after the last one that any test looks at. */
export const END = Date.UTC(2026, 10, 20, 12, 30) / MINUTE_MS;
export const WATCHED_MINUTES = 150;
export const START = END - WATCHED_MINUTES;
export const DAYS = ["15", "16", "17", "18", "19", "20"].map((day) => `2026-11-${day}`);

/**
 * Opens a migrated database for a test file, and a detector on it. Every test finds the database empty, and it is dropped
 * at the end.
 */
export async function openDetectWorld() {
  const database = await createMigratedDatabase();
  afterAll(() => database.drop());
  await ensurePartitions(database, DAYS);
  const world = createDetectWorld(database);
  beforeEach(() => world.clear());
  return { database, world };
}

const ALWAYS = 2 * END * MINUTE_MS;

/** A database, and a detector whose clock the test drives. */
export function createDetectWorld(database: MigratedDatabase) {
  let now = 0;
  /** Counts of minutes that begin at or after this are not there yet, as in the service. At first all are. */
  let shownTo = ALWAYS;

  /** Moves the counts by the minute that lie before `shownTo` into the table, and the others out of it. */
  async function showMinutes(toMs: number): Promise<void> {
    const isForward = toMs >= shownTo;
    shownTo = toMs;
    const move = async (from: string, to: string, where: string) =>
      database.pool.query(
        `with moved as (delete from ${from} where width = 60 and starts_at ${where} to_timestamp($1) returning *)
         insert into ${to} select * from moved`,
        [toMs / 1_000],
      );
    await database.pool.query("create table if not exists later_buckets (like rule_buckets)");
    await move("later_buckets", "rule_buckets", "<");
    if (!isForward) await move("rule_buckets", "later_buckets", ">=");
  }

  async function clear(): Promise<void> {
    await showMinutes(ALWAYS);
    await database.pool.query(
      "truncate zone_usual, waf_events, rule_buckets, later_buckets, rule_peaks, dirty_buckets, coverage_windows, rule_metrics, source_hours, source_usual, spikes cascade",
    );
  }

  function createDetector(over: Partial<DetectSpikesDeps> = {}): () => Promise<string | void> {
    const deps = { database, clock: () => now, log: silent, afterSpikes: () => undefined, ...over };
    // One job, as in the service: it remembers thresholds from tick to tick.
    const job = createDetectSpikesJob(deps);
    return () => runJob(job);
  }

  function createSourceDetector(
    sourceMode: () => SourceMode = () => "on",
    knownSources: () => readonly KnownSource[] = () => [],
    afterSpikes: () => unknown = () => undefined,
    zoneIds: readonly number[] = [ZONE],
  ): (signal?: AbortSignal) => Promise<string | void> {
    const deps = {
      database,
      clock: () => now,
      log: silent,
      zoneIds,
      afterSpikes,
      sourceMode,
      knownSources,
    };
    const job = createDetectSourcesJob(deps);
    return (signal) => runJob(job, signal);
  }

  /** Ticks as the clock shows the beginning of each minute of (from, to]. */
  async function tickThrough(from: number, to: number, ticks = createDetector()): Promise<void> {
    for (let minute = from + 1; minute <= to; minute += 1) {
      now = minute * MINUTE_MS + 1;
      await showMinutes(minute * MINUTE_MS);
      await ticks();
    }
  }

  /** Ticks once at this moment, which is epoch ms. */
  async function tickAt(ms: number, ticks = createDetector()): Promise<void> {
    now = ms;
    await showMinutes(ms);
    await ticks();
  }

  /** Stores the events, rolls them up, and records every hour of the last week as searched, or else as a gap. */
  async function keep(events: readonly WafEvent[], { zoneId = ZONE, gaps = [] as number[] } = {}) {
    const shown = shownTo;
    await showMinutes(ALWAYS);
    await storeAll(database, events, { zoneId });
    await createRollUp(database)();
    await showMinutes(shown);
    await database.pool.query(
      `insert into coverage_windows (zone_id, starts_at, searched_through, state, gap_reason)
     select $1, to_timestamp(hour * 3600),
       case when hour <> all ($4) then to_timestamp(hour * 3600 + 3600) end,
       case when hour = any ($4) then 'gap' else 'open' end, case when hour = any ($4) then 'expired' end
     from generate_series($2::integer, $3::integer) as hour
     on conflict (zone_id, starts_at) do update set searched_through = excluded.searched_through,
       state = excluded.state, gap_reason = excluded.gap_reason`,
      [zoneId, Math.floor(END / 60) - 200, Math.floor(END / 60), gaps],
    );
  }

  async function readSpikes() {
    const rows = await database.db
      .select()
      .from(spikes)
      .orderBy(spikes.zoneId, spikes.ruleId, spikes.openedAt);
    return rows.map(({ id: _id, ...row }) => ({ ...row, key: `${row.zoneId}/${row.ruleId}` }));
  }

  return {
    now: () => now,
    createDetector,
    createSourceDetector,
    showMinutes,
    tickThrough,
    tickAt,
    keep,
    readSpikes,
    clear,
  };
}

/** `counts[i]` events in minute `firstMinute + i`. */
export function eventsOf(
  counts: readonly number[],
  firstMinute: number,
  event: Partial<WafEvent> = {},
): WafEvent[] {
  return counts.flatMap((count, i) =>
    Array.from({ length: count }, (_, n) => {
      const occurredAt = (firstMinute + i) * MINUTE_MS + Math.floor((n * 59_000) / count);
      return makeEvent({ ...event, occurredAt, logId: `${event.ruleId ?? ""}/${i}/${n}` });
    }),
  );
}

export const minuteOf = (date: Date | null) => (date === null ? null : date.getTime() / MINUTE_MS);
