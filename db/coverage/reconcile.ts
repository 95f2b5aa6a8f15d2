import { sql } from "drizzle-orm";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";

/** Hours per statement, so that no statement for a large zone exceeds its time limit. */
const HOURS_AT_ONCE = 6;

/**
 * Returns the stored events of these hours (epoch ms of their starts) by hour and rule. An event whose rule is not
 * known counts under ''.
 */
export async function readStoredCells(
  db: Queryable,
  zoneId: number,
  hours: readonly number[],
): Promise<Map<number, Map<string, number>>> {
  const cells = new Map<number, Map<string, number>>();
  for (let at = 0; at < hours.length; at += HOURS_AT_ONCE) {
    const asked = hours.slice(at, at + HOURS_AT_ONCE);
    // Hour by hour, so that the planner reads the one partition of each and no other.
    const { rows } = await db.execute<{ hour: number; rule: string; events: number }>(sql`
      select hour, counted.rule, counted.events
      from unnest(${sql.param(asked)}::float8[]) as hour
      cross join lateral (
        select coalesce(rule_id, '') as rule, count(*)::integer as events from waf_events
        where zone_id = ${zoneId} and occurred_at >= to_timestamp(hour / 1000)
          and occurred_at < to_timestamp(hour / 1000) + interval '1 hour'
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
  const isIn = sql`zone_id = ${zoneId} and occurred_at >= ${new Date(from)} and occurred_at < ${new Date(to)}`;
  const { rows } = await db.execute<{ hour: number; rule: string; events: number }>(sql`
    select (extract(epoch from date_trunc('hour', occurred_at, 'UTC')) * 1000)::float8 as hour,
      coalesce(rule_id, '') as rule, count(*)::integer as events
    from waf_events where ${isIn} and (occurred_at, log_id) in (select occurred_at, log_id from event_revisions
      where ${isIn} and field = 'withdrawn' and accepted_at is not null)
    group by 1, 2`);
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
  const { rows } = await db.execute<{ hour: number; rule: string; events: number }>(sql`
    select (extract(epoch from occurred_at) * 1000)::float8 - 3600000 as hour, coalesce(rule_id, '') as rule,
      count(*)::integer as events
    from waf_events where zone_id = ${zoneId} and occurred_at = any(${sql.param(ends)}::timestamptz[]) group by 1, 2`);
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
    select (extract(epoch from asked) * 1000)::float8 as hour, b.rule_id as rule, coalesce(b.total, 0) as events
    from unnest(${sql.param(starts)}::timestamptz[]) as asked
    left join rule_buckets b on b.zone_id = ${zoneId} and b.width = 3600 and b.starts_at = asked
    where not exists (select from dirty_buckets d
      where d.zone_id = ${zoneId} and d.minute >= asked and d.minute < asked + interval '1 hour')`);
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
  await tx.execute(sql`
    update coverage_windows w set reconciled_at = ${new Date(at)}, upstream_count = c.upstream,
      missing_cells = c.missing, surplus_cells = c.surplus,
      stored_count = case when w.stored_count = c.counter then c.stored else w.stored_count end
    from jsonb_to_recordset(${JSON.stringify(counts)}::jsonb) as c(
      starts_at timestamptz, upstream integer, stored integer, counter integer, missing integer, surplus integer)
    where w.zone_id = ${zoneId} and w.starts_at = c.starts_at and w.state = 'open'
      and (w.reconciled_at is null or w.reconciled_at < ${new Date(at)})`);
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
    insert into differing_cells as d (zone_id, starts_at, rule_id, upstream_count, stored_count, first_seen_at,
      last_seen_at, next_repair_at)
    select ${zoneId}, starts_at, rule_id, upstream, stored, ${new Date(at)}, ${new Date(at)}, repair_at
    from jsonb_to_recordset(${JSON.stringify(cells)}::jsonb) as c(
      starts_at timestamptz, rule_id text, upstream integer, stored integer, repair_at timestamptz)
    order by starts_at, rule_id
    on conflict (zone_id, starts_at, rule_id) do update set upstream_count = excluded.upstream_count,
      stored_count = excluded.stored_count, last_seen_at = excluded.last_seen_at, resolved_at = null,
      next_repair_at = case when d.resolved_at is null then d.next_repair_at else excluded.next_repair_at end
    where d.last_seen_at <= excluded.last_seen_at`);
  const starts = hours.map(({ startsAt }) => new Date(startsAt));
  await tx.execute(sql`
    update differing_cells set resolved_at = ${new Date(at)}
    where zone_id = ${zoneId} and resolved_at is null and last_seen_at < ${new Date(at)}
      and starts_at = any(${sql.param(starts)}::timestamptz[])`);
}
