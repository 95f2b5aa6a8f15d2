import { type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { wafEvents } from "../schema/waf-events.ts";

/** First number of a pair of advisory lock numbers, the second being the zone. Pairs never meet single numbers. */
const ZONE_LOCK = 7_603_101;

/** A stale minute as it was read; `second` is its start, in seconds since the epoch. */
interface Claim {
  readonly ruleId: string;
  readonly second: number;
  readonly marks: number;
}

export interface RolledBatch {
  /** Stale minutes that were recounted. */
  readonly counted: number;
  /** Of these, how many are no longer stale: the others were marked again meanwhile. */
  readonly cleared: number;
  /** Start of the oldest and of the newest minute that was recounted, epoch ms; null where none was. */
  readonly span: { readonly oldestMs: number; readonly newestMs: number } | null;
  /** Another transaction is rolling the zone up: nothing was done. */
  readonly isTaken: boolean;
}

export async function listDirtyZones(db: Queryable): Promise<number[]> {
  const found = await db.execute<{ zoneId: number }>(
    sql`select distinct zone_id as "zoneId" from dirty_buckets order by 1`,
  );
  return found.rows.map(({ zoneId }) => zoneId);
}

/** Whether a zone has a stale minute that no writer holds at this moment; one that is held is told of on commit. */
export async function hasStaleMinutes(db: Queryable, zoneId: number): Promise<boolean> {
  const found = await db.execute(
    sql`select 1 from dirty_buckets where zone_id = ${zoneId} limit 1 for update skip locked`,
  );
  return found.rows.length > 0;
}

/**
 * Recounts up to `limit` stale minutes of a zone, newest first, and the hours, days and peaks they lie in. Needs a
 * transaction at READ COMMITTED. Of two at once in a zone one works and the other does nothing, so an hour that two
 * batches share is right after either; ingest is not kept waiting, because marks are locked at the very end only.
 */
export async function rollUpBatch(
  tx: Queryable,
  { zoneId, limit }: { zoneId: number; limit: number },
): Promise<RolledBatch> {
  if (!(await takeZone(tx, zoneId))) return { ...NOTHING, isTaken: true };
  const claims = await readClaims(tx, zoneId, limit);
  if (claims.length === 0) return { ...NOTHING, isTaken: false };
  const claimed = toClaimed(claims);
  await replaceBuckets(tx, { zoneId, width: 60, counted: countMinutes(zoneId, claimed) });
  await replaceBuckets(tx, { zoneId, width: 3_600, counted: sumBuckets(zoneId, claimed, 60, 3_600) });
  await replaceBuckets(tx, { zoneId, width: 86_400, counted: sumBuckets(zoneId, claimed, 3_600, 86_400) });
  await replacePeaks(tx, zoneId, claimed);
  const cleared = await clearClaims(tx, zoneId, claimed);
  return { counted: claims.length, cleared, span: spanOf(claims), isTaken: false };
}

const NOTHING = { counted: 0, cleared: 0, span: null };

/** The claims are sorted, newest minute first. */
function spanOf(claims: readonly Claim[]): RolledBatch["span"] {
  const [newest, oldest] = [claims[0], claims.at(-1)];
  if (newest === undefined || oldest === undefined) return null;
  return { oldestMs: oldest.second * 1_000, newestMs: newest.second * 1_000 };
}

/**
 * Takes the zone for the rest of the transaction, or says that another has it. Also keeps the planner to index ranges
 * for as long: during a first backfill it knows nothing of the tables and takes the busiest for empty ones. What it
 * then thinks a statement costs would have it compiled as well, for longer than the statement runs.
 */
async function takeZone(tx: Queryable, zoneId: number): Promise<boolean> {
  const taken = await tx.execute<{ isOurs: boolean }>(sql`
    select pg_try_advisory_xact_lock(${ZONE_LOCK}, ${zoneId}) as "isOurs",
      set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
      set_config('jit', 'off', true)`);
  return taken.rows[0]?.isOurs === true;
}

async function readClaims(tx: Queryable, zoneId: number, limit: number): Promise<Claim[]> {
  const found = await tx.execute<Claim & Record<string, unknown>>(sql`
    select rule_id as "ruleId", extract(epoch from minute)::float8 as second, marks from dirty_buckets
    where zone_id = ${zoneId} order by minute desc, rule_id limit ${limit}`);
  return found.rows;
}

function toClaimed(claims: readonly Claim[]): SQL {
  const column = <T>(read: (claim: Claim) => T) => sql.param(claims.map(read));
  return sql`unnest(${column((c) => c.ruleId)}::text[], ${column((c) => c.second)}::bigint[],
    ${column((c) => c.marks)}::integer[]) as claimed(rule_id, second, marks)`;
}

/**
 * An action's class in SQL; `classifyAction` says the same in TypeScript, and a test holds them together. The "C"
 * collation folds ASCII letters only, whatever the database's locale.
 */
export const VERB = sql`lower(e.action collate "C")`;
export const CLASS_COUNTS = sql`
  count(*)::integer as total,
  (count(*) filter (where verb in ('block', 'blocked')))::integer as blocked,
  (count(*) filter (where verb in ('log', 'logged')))::integer as logged,
  (count(*) filter (where verb in ('challenge', 'challenged')))::integer as challenged`;

/**
 * One range of the primary key per minute, read once however many of its rules are stale: the cost follows the stale
 * minutes' own events, however far apart they lie. A rule that has none left counts zero.
 */
function countMinutes(zoneId: number, claimed: SQL): SQL {
  return sql`
    select n.rule_id, to_timestamp(c.second) as starts_at, n.total, n.blocked, n.logged, n.challenged
    from (select second, array_agg(rule_id) as rules from ${claimed} group by second) c
    cross join lateral (
      select rule_id, max(total) as total, max(blocked) as blocked, max(logged) as logged,
        max(challenged) as challenged
      from (
        select rule_id, false as is_claimed, ${CLASS_COUNTS} from (
          select coalesce(e.rule_id, '') as rule_id, ${VERB} as verb from ${wafEvents} e
          where e.zone_id = ${zoneId}
            and e.occurred_at >= to_timestamp(c.second) and e.occurred_at < to_timestamp(c.second + 60)) e
        group by rule_id
        union all
        select rule_id, true, 0, 0, 0, 0 from unnest(c.rules) as rules(rule_id)) found
      group by rule_id having bool_or(is_claimed)) n`;
}

/**
 * A width that the planner cannot look into: it takes the key's index then, and not the one on the minutes of all
 * rules, which without statistics seems just as good to it.
 */
function keyWidth(width: number): SQL {
  return sql`(select ${width}::integer)`;
}

/** A coarse bucket is the sum of the next finer ones, which this transaction has brought up to date. */
function sumBuckets(zoneId: number, claimed: SQL, finer: number, width: number): SQL {
  return sql`
    select t.rule_id, t.starts_at, n.*
    from (select distinct rule_id, to_timestamp(second / ${width}::bigint * ${width}) as starts_at
          from ${claimed}) t
    cross join lateral (
      select coalesce(sum(total), 0)::integer as total, sum(blocked)::integer as blocked,
        sum(logged)::integer as logged, sum(challenged)::integer as challenged
      from rule_buckets b where b.zone_id = ${zoneId} and b.rule_id = t.rule_id and b.width = ${keyWidth(finer)}
        and b.starts_at >= t.starts_at and b.starts_at < t.starts_at + make_interval(secs => ${width})) n`;
}

/**
 * Replaces, never adds: counting a minute twice leaves the same bucket. A bucket without events goes. It is looked up
 * by its key, one after the other (`limit` keeps the lateral from becoming a join): left to choose without statistics,
 * the planner compares every bucket of the zone with every one of the batch.
 */
async function replaceBuckets(
  tx: Queryable,
  { zoneId, width, counted }: { zoneId: number; width: number; counted: SQL },
): Promise<void> {
  await tx.execute(sql`
    with counted as materialized (${counted}),
    removed as (
      delete from rule_buckets where ctid = any (array(
        select found.ctid from counted c cross join lateral (
          select b.ctid from rule_buckets b where b.zone_id = ${zoneId} and b.rule_id = c.rule_id
            and b.width = ${keyWidth(width)} and b.starts_at = c.starts_at limit 1) found
        where c.total = 0)))
    insert into rule_buckets as b (zone_id, rule_id, width, starts_at, total, blocked, logged, challenged, other)
    select ${zoneId}, rule_id, ${width}, starts_at, total, blocked, logged, challenged,
      total - blocked - logged - challenged
    from counted where total > 0 order by rule_id, starts_at
    on conflict (zone_id, rule_id, width, starts_at) do update
      set total = excluded.total, blocked = excluded.blocked, logged = excluded.logged,
        challenged = excluded.challenged, other = excluded.other
      where (b.total, b.blocked, b.logged, b.challenged)
        is distinct from (excluded.total, excluded.blocked, excluded.logged, excluded.challenged)`);
}

/**
 * The largest windows of each touched hour, and of the hour after it, into which they reach. Between events a window
 * only loses, so the maximum is at a minute with events or at the hour's first.
 */
async function replacePeaks(tx: Queryable, zoneId: number, claimed: SQL): Promise<void> {
  await tx.execute(sql`
    with counted as materialized (
      select t.rule_id, t.starts_at, p.* from (
        select distinct rule_id, to_timestamp(second / 3600 * 3600 + later) as starts_at
        from ${claimed} cross join (values (0), (3600)) as hours(later)) t
      cross join lateral (
        select coalesce(sum(total), 0)::integer as events, max(s3)::integer as peak3,
          max(s15)::integer as peak15, max(s60)::integer as peak60
        from (
          select at, total,
            sum(total) over (order by at range between '2 minutes' preceding and current row) as s3,
            sum(total) over (order by at range between '14 minutes' preceding and current row) as s15,
            sum(total) over (order by at range between '59 minutes' preceding and current row) as s60
          from (
            select b.starts_at as at, b.total from rule_buckets b
            where b.zone_id = ${zoneId} and b.rule_id = t.rule_id and b.width = ${keyWidth(60)}
              and b.starts_at >= t.starts_at - interval '59 minutes'
              and b.starts_at < t.starts_at + interval '1 hour'
            union all select t.starts_at, 0) m) w
        where at >= t.starts_at) p),
    removed as (
      delete from rule_peaks where ctid = any (array(
        select found.ctid from counted c cross join lateral (
          select p.ctid from rule_peaks p
          where p.zone_id = ${zoneId} and p.rule_id = c.rule_id and p.starts_at = c.starts_at limit 1) found
        where c.peak60 = 0)))
    insert into rule_peaks as p (zone_id, rule_id, starts_at, events, peak3, peak15, peak60)
    select ${zoneId}, rule_id, starts_at, events, peak3, peak15, peak60
    from counted where peak60 > 0 order by rule_id, starts_at
    on conflict (zone_id, rule_id, starts_at) do update
      set events = excluded.events, peak3 = excluded.peak3, peak15 = excluded.peak15, peak60 = excluded.peak60
      where (p.events, p.peak3, p.peak15, p.peak60)
        is distinct from (excluded.events, excluded.peak3, excluded.peak15, excluded.peak60)`);
}

/**
 * A mark that was raised since it was read stands for events that may not have been counted: it stays, as does one
 * that a writer holds at this moment.
 */
async function clearClaims(tx: Queryable, zoneId: number, claimed: SQL): Promise<number> {
  const cleared = await tx.execute(sql`
    delete from dirty_buckets where ctid = any (array(
      select unchanged.ctid from ${claimed} cross join lateral (
        select d.ctid from dirty_buckets d where d.zone_id = ${zoneId} and d.rule_id = claimed.rule_id
          and d.minute = to_timestamp(claimed.second) and d.marks = claimed.marks
        limit 1 for update skip locked) unchanged))`);
  return cleared.rowCount ?? 0;
}
