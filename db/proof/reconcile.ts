import { count, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { HOUR_MS } from "#lib/units.ts";
import type { Span } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names, overwriting } from "../postgres/terms.ts";
import { coverageWindows, differingCells } from "../schema/coverage.ts";
import { eventRevisions, wafEvents } from "../schema/events.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import { ruleBuckets } from "../schema/rules.ts";

const r = alias(eventRevisions, "r");

const e = alias(wafEvents, "e");
const w = alias(coverageWindows, "w");
const d = alias(differingCells, "d");
const b = alias(ruleBuckets, "b");
const m = alias(dirtyBuckets, "m");
const excluded = alias(differingCells, "excluded");

/** Hours per statement, so that no statement for a large zone exceeds its time limit. */
const HOURS_AT_ONCE = 6;

/**
 * Returns the stored events of these hours or other buckets (epoch ms of their starts) by bucket and rule. An event whose
 * rule is not known counts under ''.
 */
export async function readStoredCells(
  db: Queryable,
  zoneId: number,
  hours: readonly number[],
  bucketMs = HOUR_MS,
): Promise<Map<number, Map<string, number>>> {
  const cells = new Map<number, Map<string, number>>();
  const atOnce = (HOURS_AT_ONCE * HOUR_MS) / bucketMs;
  for (let at = 0; at < hours.length; at += atOnce) {
    const asked = hours.slice(at, at + atOnce);
    // Hour by hour, so that the planner reads the one partition of each and no other.
    const { rows } = await db.execute<{ hour: number; rule: string; events: number }>(sql`
      select hour, counted.rule, counted.events
      from unnest(${sql.param(asked)}::float8[]) as hour
      cross join lateral (
        select coalesce(${e.ruleId}, '') as rule, count(*)::integer as events from ${wafEvents} ${e}
        where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= to_timestamp(hour / 1000)
          and ${e.occurredAt} < to_timestamp((hour + ${bucketMs}::float8) / 1000)
        group by 1) as counted`);
    for (const { hour, rule, events } of rows) {
      const rules = cells.get(hour) ?? new Map<string, number>();
      cells.set(hour, rules.set(rule, events));
    }
  }
  return cells;
}

/** Returns the stored events of a span that the platform has withdrawn, by hour and rule. */
export async function readWithdrawnCells(
  db: Queryable,
  zoneId: number,
  { from, to }: Span,
): Promise<Map<number, Map<string, number>>> {
  const isIn = (table: typeof e | typeof r) => sql`${table.zoneId} = ${zoneId}
    and ${table.occurredAt} >= ${new Date(from)} and ${table.occurredAt} < ${new Date(to)}`;
  const rows = await db
    .select({
      hour: epochMs(sql`date_trunc('hour', ${e.occurredAt}, 'UTC')`),
      rule: sql<string>`coalesce(${e.ruleId}, '')`,
      events: count(),
    })
    .from(e)
    .where(
      sql`${isIn(e)} and (${e.occurredAt}, ${e.logId}) in (select ${r.occurredAt}, ${r.logId}
        from ${eventRevisions} ${r} where ${isIn(r)} and ${r.field} = 'withdrawn' and ${r.acceptedAt} is not null)`,
    )
    .groupBy(sql`1, 2`);
  return toCells(rows);
}

/** Returns the stored events at exactly the end of each of these hours, by hour and rule. */
export async function readEndCells(
  db: Queryable,
  zoneId: number,
  hours: readonly number[],
): Promise<Map<number, Map<string, number>>> {
  if (hours.length === 0) return new Map();
  const ends = hours.map((hour) => new Date(hour + 3_600_000));
  const rows = await db
    .select({
      hour: sql<number>`${epochMs(e.occurredAt)} - 3600000`,
      rule: sql<string>`coalesce(${e.ruleId}, '')`,
      events: sql<number>`count(*)::integer`,
    })
    .from(e)
    .where(sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} = any(${sql.param(ends)}::timestamptz[])`)
    .groupBy(sql`1, 2`);
  return toCells(rows);
}

function toCells(rows: readonly { hour: number; rule: string; events: number }[]) {
  const cells = new Map<number, Map<string, number>>();
  for (const { hour, rule, events } of rows)
    cells.set(hour, (cells.get(hour) ?? new Map<string, number>()).set(rule, events));
  return cells;
}

/**
 * Returns the same counts from the roll-up, which is cheaper, for hours that are not expected to differ. Leaves out
 * an hour that the roll-up still has to recount.
 */
export async function readRolledCells(
  db: Queryable,
  zoneId: number,
  hours: readonly number[],
): Promise<Map<number, Map<string, number>>> {
  const starts = hours.map((hour) => new Date(hour));
  const { rows } = await db.execute<{ hour: number; rule: string | null; events: number }>(sql`
    select ${epochMs(sql`asked`)} as hour, ${b.ruleId} as rule, coalesce(${b.total}, 0) as events
    from unnest(${sql.param(starts)}::timestamptz[]) as asked
    left join ${ruleBuckets} ${b} on ${b.zoneId} = ${zoneId} and ${b.width} = 3600 and ${b.startsAt} = asked
    where not exists (select from ${dirtyBuckets} ${m}
      where ${m.zoneId} = ${zoneId} and ${m.minute} >= asked and ${m.minute} < asked + interval '1 hour')`);
  const cells = new Map<number, Map<string, number>>();
  for (const { hour, rule, events } of rows) {
    const rules = cells.get(hour) ?? new Map<string, number>();
    cells.set(hour, rule === null ? rules : rules.set(rule, events));
  }
  return cells;
}

/** The comparison of one hour. */
export interface HourComparison {
  readonly startsAt: number;
  readonly upstreamCount: number;
  /** Stored events as counted just now, and the value of the hour's counter before that. */
  readonly storedCount: number;
  readonly counterBefore: number;
  /** When the missing events may be repaired; epoch ms. */
  readonly repairAt: number;
  readonly differing: readonly {
    readonly ruleId: string;
    readonly upstreamCount: number;
    readonly storedCount: number;
  }[];
}

/**
 * Stores the result of a comparison: counts of the undecided hours, cells that differ, and cells that no longer
 * differ. An older comparison never overwrites a newer one. Corrects the hour's counter if it was wrong and has not
 * changed since. `at` is a time before the platform was asked; epoch ms.
 */
export async function recordComparison(
  tx: Queryable,
  zoneId: number,
  hours: readonly HourComparison[],
  at: number,
): Promise<void> {
  const counts = hours.map(({ startsAt, upstreamCount, storedCount, counterBefore, differing }) => ({
    starts_at: new Date(startsAt),
    upstream: upstreamCount,
    stored: storedCount,
    counter: counterBefore,
    missing: differing.filter((cell) => cell.storedCount < cell.upstreamCount).length,
    surplus: differing.filter((cell) => cell.storedCount > cell.upstreamCount).length,
  }));
  await tx
    .update(w)
    .set({
      reconciledAt: new Date(at),
      upstreamCount: sql`c.upstream`,
      missingCells: sql`c.missing`,
      surplusCells: sql`c.surplus`,
      storedCount: sql`case when ${w.storedCount} = c.counter then c.stored else ${w.storedCount} end`,
    })
    .from(sql`jsonb_to_recordset(${JSON.stringify(counts)}::jsonb) as c(
      starts_at timestamptz, upstream integer, stored integer, counter integer, missing integer, surplus integer)`)
    .where(sql`${w.zoneId} = ${zoneId} and ${w.startsAt} = c.starts_at and ${w.state} = 'open'
      and (${w.reconciledAt} is null or ${w.reconciledAt} < ${new Date(at)})`);
  await recordCells(tx, zoneId, hours, at);
}

async function recordCells(
  tx: Queryable,
  zoneId: number,
  hours: readonly HourComparison[],
  at: number,
): Promise<void> {
  const cells = hours.flatMap(({ startsAt, differing, repairAt }) =>
    differing.map(({ ruleId, upstreamCount, storedCount }) => ({
      starts_at: new Date(startsAt),
      rule_id: ruleId,
      upstream: upstreamCount,
      stored: storedCount,
      repair_at: new Date(repairAt),
    })),
  );
  await tx.execute(sql`
    insert into ${differingCells} as ${d} (${names(d.zoneId, d.startsAt, d.ruleId, d.upstreamCount, d.storedCount)},
      ${names(d.firstSeenAt, d.lastSeenAt, d.nextRepairAt)})
    select ${zoneId}, starts_at, rule_id, upstream, stored, ${new Date(at)}, ${new Date(at)}, repair_at
    from jsonb_to_recordset(${JSON.stringify(cells)}::jsonb) as c(
      starts_at timestamptz, rule_id text, upstream integer, stored integer, repair_at timestamptz)
    order by starts_at, rule_id
    on conflict (${names(d.zoneId, d.startsAt, d.ruleId)}) do update
    set ${overwriting(d.upstreamCount, d.storedCount, d.lastSeenAt)}, ${names(d.resolvedAt)} = null,
      ${names(d.nextRepairAt)} = case when ${d.resolvedAt} is null then ${d.nextRepairAt} else ${excluded.nextRepairAt} end
    where ${d.lastSeenAt} <= ${excluded.lastSeenAt}`);
  const starts = hours.map(({ startsAt }) => new Date(startsAt));
  await tx
    .update(d)
    .set({ resolvedAt: new Date(at) })
    .where(sql`${d.zoneId} = ${zoneId} and ${d.resolvedAt} is null and ${d.lastSeenAt} < ${new Date(at)}
      and ${d.startsAt} = any(${sql.param(starts)}::timestamptz[])`);
}
