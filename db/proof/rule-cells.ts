/** Cells: the count of one rule in one hour, and cells that differ from the platform's. */
import { and, eq, gte, isNull, lt, lte, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { coverageWindows, differingCells } from "../schema/coverage.ts";
import { pages } from "../schema/ingest.ts";
import { ruleBuckets } from "../schema/rules.ts";

const w = alias(coverageWindows, "w");
const b = alias(ruleBuckets, "b");
const c = alias(differingCells, "c");
const p = alias(pages, "p");

/** A rule in one hour: the stored count and the platform's. */
interface RuleCell {
  readonly ruleId: string;
  readonly stored: number;
  /** Null if the platform was not asked about the hour yet. */
  readonly platform: number | null;
  readonly repairs: number;
}

interface HourCells {
  readonly zoneId: number;
  /** Start of the hour, epoch ms. */
  readonly startsAt: number;
  readonly limit: number;
}

/**
 * Returns the counts of an hour by rule, those that differ first. A comparison records only the rules whose counts
 * differ; of the others the platform's count is the stored one.
 */
export async function readRuleCells(
  db: Queryable,
  { zoneId, startsAt, limit }: HourCells,
): Promise<{ readonly comparedAt: number | null; readonly cells: RuleCell[] }> {
  const hour = new Date(startsAt);
  const { rows } = await db.execute<
    { [Key in keyof RuleCell]: RuleCell[Key] } & { comparedAt: number | null }
  >(sql`
    with compared as (
      select ${w.reconciledAt} from ${coverageWindows} ${w} where ${w.zoneId} = ${zoneId} and ${w.startsAt} = ${hour}),
    here as (
      select ${b.ruleId}, ${b.total} from ${ruleBuckets} ${b}
      where ${b.zoneId} = ${zoneId} and ${b.width} = 3600 and ${b.startsAt} = ${hour}),
    differing as (
      select ${c.ruleId}, ${c.upstreamCount}, ${c.repairs}, ${c.resolvedAt} from ${differingCells} ${c}
      where ${c.zoneId} = ${zoneId} and ${c.startsAt} = ${hour})
    select rule_id as "ruleId", coalesce(total, 0)::float8 as stored, coalesce(repairs, 0)::integer as repairs,
      (case when (select reconciled_at from compared) is null then null
        when upstream_count is not null and resolved_at is null then upstream_count
        else coalesce(total, 0) end)::float8 as platform,
      (select ${epochMs(sql`reconciled_at`)} from compared) as "comparedAt"
    from here full join differing using (rule_id)
    where coalesce(total, 0) > 0 or resolved_at is null
    order by (upstream_count is not null and resolved_at is null) desc, coalesce(total, 0) desc, rule_id
    limit ${limit}`);
  return {
    comparedAt: rows[0]?.comparedAt ?? null,
    cells: rows.map(({ comparedAt: _comparedAt, ...cell }) => cell),
  };
}

/** The entries of one hour that a pass over the list has read. */
interface HourPass {
  readonly pass: number;
  readonly pages: number;
  readonly entries: number;
  /** Epoch ms. */
  readonly readAt: number;
}

const PASSES = 5;

/** Returns what the last passes over the hour's day showed of the hour, newest first. An unchanged page is not counted again. */
export async function readHourPasses(
  db: Queryable,
  { zoneId, startsAt }: Pick<HourCells, "zoneId" | "startsAt">,
): Promise<HourPass[]> {
  const day = sql`(${new Date(startsAt)}::timestamptz at time zone 'UTC')::date`;
  const { rows } = await db.execute<{ [Key in keyof HourPass]: HourPass[Key] }>(sql`
    select ${p.pass}, count(*)::integer as pages, sum((hour ->> 1)::integer)::integer as entries,
      ${epochMs(sql`max(${p.readAt})`)} as "readAt"
    from ${pages} ${p}, jsonb_array_elements(${p.hours}) as hour
    where ${p.zoneId} = ${zoneId} and ${p.day} = ${day} and (hour ->> 0)::bigint = ${startsAt}
      and ${p.pass} > (select coalesce(max(${p.pass}), 0) from ${pages} ${p}
        where ${p.zoneId} = ${zoneId} and ${p.day} = ${day}) - ${PASSES}
    group by ${p.pass} order by ${p.pass} desc`);
  return rows;
}

/** A cell of an undecided hour for which fewer events are stored than the platform counts. */
interface MissingCell {
  /** Epoch ms. */
  readonly startsAt: number;
  readonly ruleId: string;
  readonly repairs: number;
}

interface DueAt {
  readonly nowMs: number;
  /** The platform no longer serves hours that begin before this. */
  readonly horizonMs: number;
}

/**
 * Returns the cells that may be repaired now and that the platform still serves. The hour that expires first comes
 * first.
 */
export async function readDueCells(db: Queryable, zoneId: number, due: DueAt): Promise<MissingCell[]> {
  const { startsAt, ruleId, repairs } = differingCells;
  const rows = await db
    .select({ startsAt, ruleId, repairs })
    .from(differingCells)
    .innerJoin(coverageWindows, isItsHour())
    .where(and(eq(differingCells.zoneId, zoneId), isDue(due)))
    .orderBy(startsAt, ruleId);
  return rows.map((row) => ({ ...row, startsAt: row.startsAt.getTime() }));
}

/** Returns the zones that have a cell to repair now. */
export async function listRepairableZones(db: Queryable, due: DueAt): Promise<number[]> {
  const rows = await db
    .selectDistinct({ zoneId: differingCells.zoneId })
    .from(differingCells)
    .innerJoin(coverageWindows, isItsHour())
    .where(isDue(due));
  return rows.map(({ zoneId }) => zoneId);
}

/**
 * Counts a repair of an hour's due cells and postpones the next one, twice as long every time. The postponement is
 * stored before the request is sent, so the platform is not asked again at once whatever the outcome is.
 */
export async function claimRepair(
  db: Queryable,
  zoneId: number,
  repair: { startsAt: number; nowMs: number; firstMs: number; longestMs: number },
): Promise<void> {
  const { startsAt, nowMs, firstMs, longestMs } = repair;
  const waitMs = sql`least(${longestMs}::float8, ${firstMs}::float8 * power(2, least(repairs, 30)))`;
  const now = new Date(nowMs);
  await db
    .update(differingCells)
    .set({
      repairs: sql`${differingCells.repairs} + 1`,
      nextRepairAt: sql`${now}::timestamptz + ${waitMs} * interval '1 millisecond'`,
    })
    .where(
      and(
        eq(differingCells.zoneId, zoneId),
        eq(differingCells.startsAt, new Date(startsAt)),
        isMissing(),
        lte(differingCells.nextRepairAt, now),
      ),
    );
}

function isItsHour() {
  return and(
    eq(coverageWindows.zoneId, differingCells.zoneId),
    eq(coverageWindows.startsAt, differingCells.startsAt),
  );
}

function isDue({ nowMs, horizonMs }: DueAt) {
  return and(
    isMissing(),
    lte(differingCells.nextRepairAt, new Date(nowMs)),
    gte(differingCells.startsAt, new Date(horizonMs)),
    eq(coverageWindows.state, "open"),
  );
}

function isMissing() {
  return and(isNull(differingCells.resolvedAt), lt(differingCells.storedCount, differingCells.upstreamCount));
}
