import { desc, eq, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { markChanged } from "../delivery/forwarding/forward-cursors.ts";
import { names, overwriting } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import { ruleBuckets, rulePeaks } from "../schema/rules.ts";
import { sourceHours } from "../schema/sources.ts";

const b = alias(ruleBuckets, "b");
const d = alias(dirtyBuckets, "d");
const h = alias(sourceHours, "h");
const e = alias(wafEvents, "e");
const newBucket = alias(ruleBuckets, "excluded");
const p = alias(rulePeaks, "p");
const newPeak = alias(rulePeaks, "excluded");
const BUCKET_KEY = names(b.zoneId, b.ruleId, b.width, b.startsAt);
const PEAK_KEY = names(p.zoneId, p.ruleId, p.startsAt);

/**
 * First number of a pair of advisory lock numbers; the second is the zone. Pairs never collide with single lock
 * numbers.
 */
const ZONE_LOCK = 7_603_101;

/** A stale minute as it was read. `second` is its start, in seconds since the epoch. */
interface Claim {
  readonly ruleId: string;
  readonly second: number;
  readonly marks: number;
}

export interface RolledBatch {
  /** Stale minutes that were recounted. */
  readonly counted: number;
  /** How many of the counted minutes are no longer stale. The others were marked again meanwhile. */
  readonly cleared: number;
  /** Start of the oldest and of the newest recounted minute, epoch ms; null if none was recounted. */
  readonly span: { readonly oldestMs: number; readonly newestMs: number } | null;
  /** True if another transaction is rolling the zone up, so that this call did nothing. */
  readonly isTaken: boolean;
}

export async function listDirtyZones(db: Queryable): Promise<number[]> {
  const found = await db.selectDistinct({ zoneId: d.zoneId }).from(d).orderBy(d.zoneId);
  return found.map(({ zoneId }) => zoneId);
}

/**
 * Returns whether a zone has a stale minute that no writer has locked. A writer that holds one enqueues a roll-up on
 * commit.
 */
export async function hasStaleMinutes(db: Queryable, zoneId: number): Promise<boolean> {
  const found = await db
    .select({ marks: d.marks })
    .from(d)
    .where(eq(d.zoneId, zoneId))
    .limit(1)
    .for("update", { skipLocked: true });
  return found.length > 0;
}

/**
 * Recounts up to `limit` stale minutes of a zone, newest first, and the hours, days and peaks that contain them.
 * Needs a transaction at READ COMMITTED. Of two concurrent calls in a zone one works and the other does nothing, so
 * an hour that two batches share is correct after either. Ingest is not blocked, because marks are locked only at the
 * very end.
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
  await markSourceHours(tx, zoneId, claimed);
  await markChanged(tx, zoneId, sql`select distinct to_timestamp(second) from ${claimed}`);
  const cleared = await clearClaims(tx, zoneId, claimed);
  return { counted: claims.length, cleared, span: spanOf(claims), isTaken: false };
}

const NOTHING = { counted: 0, cleared: 0, span: null };

/** Returns the span of the claims, which are sorted, newest minute first. */
function spanOf(claims: readonly Claim[]): RolledBatch["span"] {
  const [newest, oldest] = [claims[0], claims.at(-1)];
  if (newest === undefined || oldest === undefined) return null;
  return { oldestMs: oldest.second * 1_000, newestMs: newest.second * 1_000 };
}

/**
 * Takes the zone's lock for the rest of the transaction, or returns false when another transaction has it. Also
 * restricts the planner to index ranges until then: during a first backfill it has no statistics and takes the
 * busiest tables for empty ones. Its cost estimates would then also have the statement compiled, which takes longer
 * than the statement runs.
 */
async function takeZone(tx: Queryable, zoneId: number): Promise<boolean> {
  const taken = await tx.execute<{ isOurs: boolean }>(sql`
    select pg_try_advisory_xact_lock(${ZONE_LOCK}, ${zoneId}) as "isOurs",
      set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
      set_config('jit', 'off', true)`);
  return taken.rows[0]?.isOurs === true;
}

function readClaims(tx: Queryable, zoneId: number, limit: number): Promise<Claim[]> {
  return tx
    .select({
      ruleId: d.ruleId,
      second: sql<number>`extract(epoch from ${d.minute})::float8`,
      marks: d.marks,
    })
    .from(d)
    .where(eq(d.zoneId, zoneId))
    .orderBy(desc(d.minute), d.ruleId)
    .limit(limit);
}

function toClaimed(claims: readonly Claim[]): SQL {
  const column = <T>(read: (claim: Claim) => T) => sql.param(claims.map(read));
  return sql`unnest(${column((c) => c.ruleId)}::text[], ${column((c) => c.second)}::bigint[],
    ${column((c) => c.marks)}::integer[]) as claimed(rule_id, second, marks)`;
}

/**
 * The class of an action in SQL. `classifyAction` computes the same in TypeScript, and a test compares them. The "C"
 * collation folds ASCII letters only, whatever the database's locale is.
 */
export const VERB = sql`lower(${e.action} collate "C")`;
export const CLASS_COUNTS = sql`
  count(*)::integer as total,
  (count(*) filter (where verb in ('block', 'blocked')))::integer as blocked,
  (count(*) filter (where verb in ('log', 'logged')))::integer as logged,
  (count(*) filter (where verb in ('challenge', 'challenged')))::integer as challenged`;

/**
 * Counts the events of the stale minutes. Reads one range of the primary key per minute, once for all of its stale
 * rules, so the cost depends on the stale minutes' own events, however far apart the minutes are. A rule without
 * events left counts zero.
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
          select coalesce(${e.ruleId}, '') as rule_id, ${VERB} as verb from ${wafEvents} ${e}
          where ${e.zoneId} = ${zoneId}
            and ${e.occurredAt} >= to_timestamp(c.second) and ${e.occurredAt} < to_timestamp(c.second + 60)) e
        group by rule_id
        union all
        select rule_id, true, 0, 0, 0, 0 from unnest(c.rules) as rules(rule_id)) found
      group by rule_id having bool_or(is_claimed)) n`;
}

/**
 * Returns a width whose value the planner cannot see. The planner then uses the index of the key instead of the one
 * on the minutes of all rules, which without statistics seems equally good.
 */
function keyWidth(width: number): SQL {
  return sql`(select ${width}::integer)`;
}

/** Returns the sums of the next finer buckets, which this transaction has already updated. */
function sumBuckets(zoneId: number, claimed: SQL, finer: number, width: number): SQL {
  return sql`
    select t.rule_id, t.starts_at, n.*
    from (select distinct rule_id, to_timestamp(second / ${width}::bigint * ${width}) as starts_at
          from ${claimed}) t
    cross join lateral (
      select coalesce(sum(${b.total}), 0)::integer as total, sum(${b.blocked})::integer as blocked,
        sum(${b.logged})::integer as logged, sum(${b.challenged})::integer as challenged
      from ${ruleBuckets} ${b}
      where ${b.zoneId} = ${zoneId} and ${b.ruleId} = t.rule_id and ${b.width} = ${keyWidth(finer)}
        and ${b.startsAt} >= t.starts_at and ${b.startsAt} < t.starts_at + make_interval(secs => ${width})) n`;
}

/**
 * Replaces buckets and never adds, so counting a minute twice leaves the same bucket. Deletes a bucket without
 * events. Buckets are looked up by key, one after the other (`limit` keeps the lateral from becoming a join). Without
 * statistics the planner would otherwise compare every bucket of the zone with every bucket of the batch.
 */
async function replaceBuckets(
  tx: Queryable,
  { zoneId, width, counted }: { zoneId: number; width: number; counted: SQL },
): Promise<void> {
  await tx.execute(sql`
    with counted as materialized (${counted}),
    removed as (
      delete from ${ruleBuckets} ${b} where ctid = any (array(
        select found.ctid from counted c cross join lateral (
          select ${b}.ctid from ${ruleBuckets} ${b} where ${b.zoneId} = ${zoneId} and ${b.ruleId} = c.rule_id
            and ${b.width} = ${keyWidth(width)} and ${b.startsAt} = c.starts_at limit 1) found
        where c.total = 0)))
    insert into ${ruleBuckets} as ${b} (${BUCKET_KEY}, ${names(b.total, b.blocked, b.logged, b.challenged, b.other)})
    select ${zoneId}, rule_id, ${width}, starts_at, total, blocked, logged, challenged,
      total - blocked - logged - challenged
    from counted where total > 0 order by rule_id, starts_at
    on conflict (${BUCKET_KEY}) do update
      set ${overwriting(b.total, b.blocked, b.logged, b.challenged, b.other)}
      where (${b.total}, ${b.blocked}, ${b.logged}, ${b.challenged})
        is distinct from (${newBucket.total}, ${newBucket.blocked}, ${newBucket.logged}, ${newBucket.challenged})`);
}

/**
 * Replaces the largest windows of each touched hour, and of the hour after it, into which the windows reach. Between
 * events a window can only shrink, so the maximum is at a minute with events or at the hour's first minute.
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
            select ${b.startsAt} as at, ${b.total} from ${ruleBuckets} ${b}
            where ${b.zoneId} = ${zoneId} and ${b.ruleId} = t.rule_id and ${b.width} = ${keyWidth(60)}
              and ${b.startsAt} >= t.starts_at - interval '59 minutes'
              and ${b.startsAt} < t.starts_at + interval '1 hour'
            union all select t.starts_at, 0) m) w
        where at >= t.starts_at) p),
    removed as (
      delete from ${rulePeaks} where ctid = any (array(
        select found.ctid from counted c cross join lateral (
          select ${p}.ctid from ${rulePeaks} ${p}
          where ${p.zoneId} = ${zoneId} and ${p.ruleId} = c.rule_id and ${p.startsAt} = c.starts_at limit 1) found
        where c.peak60 = 0)))
    insert into ${rulePeaks} as ${p} (${PEAK_KEY}, ${names(p.events, p.peak3, p.peak15, p.peak60)})
    select ${zoneId}, rule_id, starts_at, events, peak3, peak15, peak60
    from counted where peak60 > 0 order by rule_id, starts_at
    on conflict (${PEAK_KEY}) do update
      set ${overwriting(p.events, p.peak3, p.peak15, p.peak60)}
      where (${p.events}, ${p.peak3}, ${p.peak15}, ${p.peak60})
        is distinct from (${newPeak.events}, ${newPeak.peak3}, ${newPeak.peak15}, ${newPeak.peak60})`);
}

/** Marks the counted hours of the source series that the claims change; their windows reach into the hour after. */
async function markSourceHours(tx: Queryable, zoneId: number, claimed: SQL): Promise<void> {
  await tx
    .update(h)
    .set({ marks: sql`${h.marks} + 1`, isStale: true })
    .where(sql`${h.zoneId} = ${zoneId} and ${h.startsAt} in (
      select to_timestamp(second / 3600 * 3600 + later) from ${claimed} cross join (values (0), (3600)) as hours(later))`);
}

/**
 * Clears the marks of the claims. Keeps a mark that was raised again since it was read, because its events may not
 * have been counted, and a mark that a writer has locked.
 */
async function clearClaims(tx: Queryable, zoneId: number, claimed: SQL): Promise<number> {
  const cleared = await tx.execute(sql`
    delete from ${dirtyBuckets} ${d} where ctid = any (array(
      select unchanged.ctid from ${claimed} cross join lateral (
        select ${d}.ctid from ${dirtyBuckets} ${d} where ${d.zoneId} = ${zoneId} and ${d.ruleId} = claimed.rule_id
          and ${d.minute} = to_timestamp(claimed.second) and ${d.marks} = claimed.marks
        limit 1 for update skip locked) unchanged))`);
  return cleared.rowCount ?? 0;
}
