import { bucketStart } from "#detection/rules/detection-settings.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { classifyAction } from "#model/action-class.ts";
import { BUCKET_WIDTHS } from "#model/kinds.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";

/** `zone rule width start` (start in epoch ms) -> counts. */
type Buckets = Record<
  string,
  { total: number; blocked: number; logged: number; challenged: number; other: number }
>;
/** `zone rule start` -> events and the peaks of 3, 15 and 60 minutes. */
type Peaks = Record<string, readonly [events: number, peak3: number, peak15: number, peak60: number]>;

interface EventRow {
  readonly zone: number;
  readonly rule: string;
  readonly at: number;
  readonly action: string | null;
}

async function readEvents({ pool }: MigratedDatabase): Promise<EventRow[]> {
  const { rows } = await pool.query<EventRow>(
    `select zone_id as zone, coalesce(rule_id, '') as rule, action,
       (extract(epoch from occurred_at) * 1000)::float8 as at from waf_events`,
  );
  return rows;
}

/** Every event counted one after the other. */
export async function naiveBuckets(database: MigratedDatabase): Promise<Buckets> {
  const buckets: Buckets = {};
  for (const { zone, rule, at, action } of await readEvents(database)) {
    for (const width of BUCKET_WIDTHS) {
      const key = `${zone} ${rule} ${width} ${bucketStart(at, width)}`;
      const bucket = (buckets[key] ??= { total: 0, blocked: 0, logged: 0, challenged: 0, other: 0 });
      bucket.total += 1;
      bucket[classifyAction(action)] += 1;
    }
  }
  return buckets;
}

export async function storedBuckets({ pool }: MigratedDatabase): Promise<Buckets> {
  const { rows } = await pool.query(
    `select concat_ws(' ', zone_id, rule_id, width, extract(epoch from starts_at)::bigint * 1000) as key,
       json_build_object('total', total, 'blocked', blocked, 'logged', logged, 'challenged', challenged,
         'other', other) as counts from rule_buckets`,
  );
  return Object.fromEntries(rows.map(({ key, counts }) => [key, counts]));
}

/** Every window of every minute of every hour in which a window can have events. */
export async function naivePeaks(database: MigratedDatabase): Promise<Peaks> {
  const series = new Map<string, Map<number, number>>();
  for (const { zone, rule, at } of await readEvents(database)) {
    const counts = series.get(`${zone} ${rule}`) ?? new Map<number, number>();
    series.set(`${zone} ${rule}`, counts);
    const minute = Math.floor(at / MINUTE_MS);
    counts.set(minute, (counts.get(minute) ?? 0) + 1);
  }
  const peaks: Peaks = {};
  for (const [key, counts] of series) {
    const hours = new Set([...counts.keys()].flatMap((m) => [Math.floor(m / 60), Math.floor(m / 60) + 1]));
    const sum = (from: number, to: number) => {
      let total = 0;
      for (let minute = from; minute < to; minute += 1) total += counts.get(minute) ?? 0;
      return total;
    };
    for (const hour of hours) {
      const ends = Array.from({ length: 60 }, (_, i) => hour * 60 + i + 1);
      const peak = (width: number) => Math.max(...ends.map((end) => sum(end - width, end)));
      if (peak(60) === 0) continue;
      peaks[`${key} ${hour * HOUR_MS}`] = [sum(hour * 60, hour * 60 + 60), peak(3), peak(15), peak(60)];
    }
  }
  return peaks;
}

export async function storedPeaks({ pool }: MigratedDatabase): Promise<Peaks> {
  const { rows } = await pool.query(
    `select concat_ws(' ', zone_id, rule_id, extract(epoch from starts_at)::bigint * 1000) as key,
       json_build_array(events, peak3, peak15, peak60) as peaks from rule_peaks`,
  );
  return Object.fromEntries(rows.map(({ key, peaks }) => [key, peaks]));
}
