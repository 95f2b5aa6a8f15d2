import { and, desc, eq, ne, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Mark } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { alerts } from "../schema/alerts.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";
import { spikes } from "../schema/spikes.ts";

const b = alias(ruleBuckets, "b");

export interface RisenRule {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly during: number;
  readonly before: number;
}

/**
 * Returns the rules that had more than twice as many events in [fromMs, toMs) as in the time of the same length before,
 * the largest difference first.
 */
export async function listRisenRules(
  db: Queryable,
  query: {
    readonly zoneIds: readonly number[] | null;
    /** Whole minutes. */
    readonly fromMs: number;
    readonly toMs: number;
    readonly except: { readonly zoneId: number; readonly ruleId: string };
    readonly limit: number;
  },
): Promise<RisenRule[]> {
  const { zoneIds, fromMs, toMs, except, limit } = query;
  const from = new Date(fromMs);
  const ofZones =
    zoneIds === null ? sql`` : sql`and ${b.zoneId} = any(${sql.param([...zoneIds])}::integer[])`;
  const { rows } = await db.execute<{ [Key in keyof RisenRule]: RisenRule[Key] }>(sql`
    with counted as (
      select ${b.zoneId}, ${b.ruleId},
        coalesce(sum(${b.total}) filter (where ${b.startsAt} >= ${from}), 0)::float8 as during,
        coalesce(sum(${b.total}) filter (where ${b.startsAt} < ${from}), 0)::float8 as before
      from ${ruleBuckets} ${b}
      where ${b.width} = 60 and ${b.startsAt} >= ${new Date(fromMs - (toMs - fromMs))}
        and ${b.startsAt} < ${new Date(toMs)} ${ofZones}
      group by ${b.zoneId}, ${b.ruleId})
    select zone_id as "zoneId", rule_id as "ruleId", during, before from counted
    where during >= 10 and during > 2 * before and not (zone_id = ${except.zoneId} and rule_id = ${except.ruleId})
    order by during - before desc, zone_id, rule_id limit ${limit}`);
  return rows;
}

export interface Episode {
  readonly alertId: number;
  readonly firedAt: number;
  readonly resolvedAt: number | null;
  readonly state: string;
  readonly severity: string | null;
  readonly mark: Mark | null;
  readonly peak: number | null;
}

/** Returns the other alerts about a rule, newest first. */
export function listEpisodes(
  db: Queryable,
  { zoneId, ruleId, exceptId, limit }: { zoneId: number; ruleId: string; exceptId: number; limit: number },
): Promise<Episode[]> {
  return db
    .select({
      alertId: alerts.id,
      firedAt: epochMs(alerts.firedAt),
      resolvedAt: epochMs(alerts.resolvedAt),
      state: alerts.state,
      severity: sql<string | null>`${alerts.details} #>> '{message,severity}'`,
      mark: spikes.mark,
      peak: spikes.peak,
    })
    .from(alerts)
    .leftJoin(spikes, eq(spikes.id, alerts.spikeId))
    .where(and(eq(alerts.zoneId, zoneId), eq(alerts.ruleId, ruleId), ne(alerts.id, exceptId)))
    .orderBy(desc(alerts.id))
    .limit(limit);
}
