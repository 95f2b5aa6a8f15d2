import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/** Stored events by hour (epoch ms of its start) and rule; an event whose rule is not known counts under ''. */
export async function readStoredCells(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<Map<number, Map<string, number>>> {
  const { rows } = await db.execute<{ hour: number; rule: string; events: number }>(sql`
    select (extract(epoch from date_trunc('hour', occurred_at)) * 1000)::float8 as hour,
      coalesce(rule_id, '') as rule, count(*)::integer as events
    from waf_events
    where zone_id = ${zoneId} and occurred_at >= ${new Date(fromMs)} and occurred_at < ${new Date(toMs)}
    group by 1, 2`);
  const cells = new Map<number, Map<string, number>>();
  for (const { hour, rule, events } of rows) {
    const rules = cells.get(hour) ?? new Map<string, number>();
    cells.set(hour, rules.set(rule, events));
  }
  return cells;
}

/** One hour as it was compared. */
export interface HourComparison {
  readonly startsAt: number;
  readonly upstreamCount: number;
  /** Counted just now; what the hour's counter said before that. */
  readonly storedCount: number;
  readonly counterBefore: number;
  readonly differing: readonly {
    readonly ruleId: string;
    readonly upstreamCount: number;
    readonly storedCount: number;
  }[];
}

export interface Compared {
  /** Before the platform was asked; epoch ms. */
  readonly at: number;
  /** When what is missing may be repaired; epoch ms. */
  readonly repairAt: number;
}

/**
 * Records what a comparison found: counts of the undecided hours, cells that differ, and cells that no longer do. An
 * older comparison never overwrites a newer one. The hour's counter is set right where it was wrong and has not moved.
 */
export async function recordComparison(
  tx: Queryable,
  zoneId: number,
  hours: readonly HourComparison[],
  { at, repairAt }: Compared,
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
  await recordCells(tx, zoneId, hours, { at, repairAt });
}

async function recordCells(
  tx: Queryable,
  zoneId: number,
  hours: readonly HourComparison[],
  { at, repairAt }: Compared,
): Promise<void> {
  const cells = hours.flatMap(({ startsAt, differing }) =>
    differing.map(({ ruleId, upstreamCount, storedCount }) => ({
      starts_at: new Date(startsAt),
      rule_id: ruleId,
      upstream: upstreamCount,
      stored: storedCount,
    })),
  );
  await tx.execute(sql`
    insert into differing_cells as d (zone_id, starts_at, rule_id, upstream_count, stored_count, first_seen_at,
      last_seen_at, next_repair_at)
    select ${zoneId}, starts_at, rule_id, upstream, stored, ${new Date(at)}, ${new Date(at)}, ${new Date(repairAt)}
    from jsonb_to_recordset(${JSON.stringify(cells)}::jsonb) as c(
      starts_at timestamptz, rule_id text, upstream integer, stored integer)
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
