import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { CLASS_COUNTS, VERB } from "../detection/roll-up.ts";
import { toMoment } from "../search/search-condition.ts";

export interface RuleDay {
  /** Start of the UTC day, epoch ms. */
  readonly startsAt: number;
  readonly total: number;
  readonly blocked: number;
  readonly logged: number;
  readonly challenged: number;
}

/**
 * Returns how often a rule was triggered on each UTC day of [from, to), epoch ms of days' starts. Days without events
 * are missing. Days are read from the roll-up. For each minute that is stale there, the stale count is subtracted and
 * the minute's events are counted instead, so the answer matches the stored events.
 */
export async function readRuleDays(
  db: Queryable,
  { zoneId, ruleId }: { zoneId: number; ruleId: string },
  { from, to }: { from: number; to: number },
): Promise<RuleDay[]> {
  const span = (column: string) =>
    sql`${sql.raw(column)} >= ${toMoment(from)} and ${sql.raw(column)} < ${toMoment(to)}`;
  const found = await db.execute<RuleDay & Record<string, unknown>>(sql`
    with stale as materialized (
      select minute from dirty_buckets where zone_id = ${zoneId} and rule_id = ${ruleId} and ${span("minute")}),
    parts as (
      select starts_at as day, total, blocked, logged, challenged from rule_buckets
      where zone_id = ${zoneId} and rule_id = ${ruleId} and width = 86400 and ${span("starts_at")}
      union all
      select date_trunc('day', minute), -total, -blocked, -logged, -challenged
      from stale join rule_buckets b
        on b.zone_id = ${zoneId} and b.rule_id = ${ruleId} and b.width = 60 and b.starts_at = minute
      union all
      select date_trunc('day', minute), n.* from stale cross join lateral (
        select ${CLASS_COUNTS} from (
          select ${VERB} as verb from waf_events e
          where e.zone_id = ${zoneId} and e.occurred_at >= minute and e.occurred_at < minute + interval '1 minute'
            and coalesce(e.rule_id, '') = ${ruleId}) e) n)
    select extract(epoch from day)::float8 * 1000 as "startsAt", sum(total)::float8 as total,
      sum(blocked)::float8 as blocked, sum(logged)::float8 as logged, sum(challenged)::float8 as challenged
    from parts group by day having sum(total) > 0 order by day`);
  return found.rows;
}
