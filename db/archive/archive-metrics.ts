import { sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { CLASS_COUNTS, VERB } from "../detection/roll-up.ts";
import { epochMs } from "../postgres/terms.ts";
import { dirtyBuckets } from "../schema/dirty-buckets.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";
import { wafEvents } from "../schema/waf-events.ts";
import { toMoment } from "../search/search-condition.ts";

const b = alias(ruleBuckets, "b");
const d = alias(dirtyBuckets, "d");
const e = alias(wafEvents, "e");

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
  const span = (column: PgColumn) => sql`${column} >= ${toMoment(from)} and ${column} < ${toMoment(to)}`;
  const found = await db.execute<RuleDay & Record<string, unknown>>(sql`
    with stale as materialized (
      select ${d.minute} from ${dirtyBuckets} ${d}
      where ${d.zoneId} = ${zoneId} and ${d.ruleId} = ${ruleId} and ${span(d.minute)}),
    parts as (
      select ${b.startsAt} as day, ${b.total}, ${b.blocked}, ${b.logged}, ${b.challenged} from ${ruleBuckets} ${b}
      where ${b.zoneId} = ${zoneId} and ${b.ruleId} = ${ruleId} and ${b.width} = 86400 and ${span(b.startsAt)}
      union all
      select date_trunc('day', minute), -${b.total}, -${b.blocked}, -${b.logged}, -${b.challenged}
      from stale join ${ruleBuckets} ${b}
        on ${b.zoneId} = ${zoneId} and ${b.ruleId} = ${ruleId} and ${b.width} = 60 and ${b.startsAt} = minute
      union all
      select date_trunc('day', minute), n.* from stale cross join lateral (
        select ${CLASS_COUNTS} from (
          select ${VERB} as verb from ${wafEvents} ${e}
          where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= minute
            and ${e.occurredAt} < minute + interval '1 minute' and coalesce(${e.ruleId}, '') = ${ruleId}) e) n)
    select ${epochMs(sql`day`)} as "startsAt", sum(total)::float8 as total,
      sum(blocked)::float8 as blocked, sum(logged)::float8 as logged, sum(challenged)::float8 as challenged
    from parts group by day having sum(total) > 0 order by day`);
  return found.rows;
}
