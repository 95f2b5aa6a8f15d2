import { type SQL, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { archiveFiles } from "../schema/archive.ts";
import { wafEvents } from "../schema/events.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { CLASS_COUNTS, VERB } from "./roll-up.ts";

const b = alias(ruleBuckets, "b");
const e = alias(wafEvents, "e");
const d = alias(dirtyBuckets, "d");
const f = alias(archiveFiles, "f");

interface BucketCounts {
  readonly total: number;
  readonly blocked: number;
  readonly logged: number;
  readonly challenged: number;
}

/** A bucket that differs from a recount of its events; null if the bucket is missing on one side. */
interface DifferingBucket {
  readonly zoneId: number;
  readonly ruleId: string;
  /** Seconds. */
  readonly width: number;
  readonly startsAt: Date;
  readonly stored: BucketCounts | null;
  readonly recounted: BucketCounts | null;
  /** True if a stale minute of the bucket still waits for the roll-up, which explains the difference. */
  readonly isPending: boolean;
}

/**
 * Returns the buckets of every width that overlap [from, to) and differ from a recount of their events, in key order,
 * `limit` at most. Reads the events of the whole UTC days involved. A minute of an archive day may be missing: it is
 * kept for some weeks only.
 */
export async function compareBuckets(
  db: Queryable,
  { zoneId, from, to, limit = 1_000 }: { zoneId?: number; from: Date; to: Date; limit?: number },
): Promise<DifferingBucket[]> {
  const [fromSecond, toSecond] = [from.getTime() / 1_000, to.getTime() / 1_000];
  const firstDay = sql`to_timestamp(floor(${fromSecond}::float8 / 86400) * 86400)`;
  const lastDay = sql`to_timestamp(ceil(${toSecond}::float8 / 86400) * 86400)`;
  const isZone = (column: PgColumn) => (zoneId === undefined ? sql`true` : sql`${column} = ${zoneId}`);
  const asJson = (row: SQL) => sql`case when ${row}.total is not null then json_build_object(
    'total', ${row}.total, 'blocked', ${row}.blocked, 'logged', ${row}.logged, 'challenged', ${row}.challenged) end`;
  const found = await db.execute<
    Omit<DifferingBucket, "startsAt"> & { second: number } & Record<string, unknown>
  >(sql`
    with minutes as materialized (
      select zone_id, rule_id, minute, ${CLASS_COUNTS} from (
        select ${e.zoneId}, coalesce(${e.ruleId}, '') as rule_id,
          date_bin('1 minute', ${e.occurredAt}, to_timestamp(0)) as minute, ${VERB} as verb
        from ${wafEvents} ${e}
        where ${isZone(e.zoneId)} and ${e.occurredAt} >= ${firstDay} and ${e.occurredAt} < ${lastDay}) e
      group by 1, 2, 3),
    recounted as (
      select zone_id, rule_id, width, date_bin(make_interval(secs => width), minute, to_timestamp(0)) as starts_at,
        sum(total)::integer as total, sum(blocked)::integer as blocked,
        sum(logged)::integer as logged, sum(challenged)::integer as challenged
      from minutes cross join (values (60), (3600), (86400)) as widths(width)
      group by 1, 2, 3, 4),
    stored as (
      select ${b.zoneId}, ${b.ruleId}, ${b.width}, ${b.startsAt}, ${b.total}, ${b.blocked}, ${b.logged}, ${b.challenged}
      from ${ruleBuckets} ${b}
      where ${isZone(b.zoneId)} and ${b.startsAt} >= ${firstDay} and ${b.startsAt} < ${lastDay})
    select zone_id as "zoneId", rule_id as "ruleId", width, extract(epoch from starts_at)::float8 as second,
      stored, recounted,
      exists (select from ${dirtyBuckets} ${d}
        where ${d.zoneId} = differing.zone_id and ${d.ruleId} = differing.rule_id
          and ${d.minute} >= starts_at and ${d.minute} < starts_at + make_interval(secs => width)) as "isPending"
    from (
      select zone_id, rule_id, width, starts_at, ${asJson(sql`s`)} as stored, ${asJson(sql`r`)} as recounted
      from stored s full join recounted r using (zone_id, rule_id, width, starts_at)
      where (s.total, s.blocked, s.logged, s.challenged)
        is distinct from (r.total, r.blocked, r.logged, r.challenged)
        and not (width = 60 and s.total is null and exists (select from ${archiveFiles} ${f}
          where ${f.zoneId} = r.zone_id and ${f.day} = (r.starts_at at time zone 'UTC')::date
            and ${f.kind} = 'events' and ${f.retiredAt} is null))) differing
    where starts_at < to_timestamp(${toSecond}) and starts_at + make_interval(secs => width) > to_timestamp(${fromSecond})
    order by 1, 2, 3, 4 limit ${limit}`);
  return found.rows.map(({ second, ...row }) => ({ ...row, startsAt: new Date(second * 1_000) }));
}
