import { sql } from "drizzle-orm";
import type { Mark } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";

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
  const ofZones = zoneIds === null ? sql`` : sql`and zone_id = any(${sql.param([...zoneIds])}::integer[])`;
  const { rows } = await db.execute<{ [Key in keyof RisenRule]: RisenRule[Key] }>(sql`
    with counted as (
      select zone_id, rule_id, coalesce(sum(total) filter (where starts_at >= ${from}), 0)::float8 as during,
        coalesce(sum(total) filter (where starts_at < ${from}), 0)::float8 as before
      from rule_buckets
      where width = 60 and starts_at >= ${new Date(fromMs - (toMs - fromMs))} and starts_at < ${new Date(toMs)} ${ofZones}
      group by zone_id, rule_id)
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
export async function listEpisodes(
  db: Queryable,
  { zoneId, ruleId, exceptId, limit }: { zoneId: number; ruleId: string; exceptId: number; limit: number },
): Promise<Episode[]> {
  const { rows } = await db.execute<{ [Key in keyof Episode]: Episode[Key] }>(sql`
    select a.id::float8 as "alertId", (extract(epoch from a.fired_at) * 1000)::float8 as "firedAt",
      (extract(epoch from a.resolved_at) * 1000)::float8 as "resolvedAt", a.state,
      a.details #>> '{message,severity}' as severity, s.mark, s.peak::float8 as peak
    from alerts a left join spikes s on s.id = a.spike_id
    where a.zone_id = ${zoneId} and a.rule_id = ${ruleId} and a.id <> ${exceptId}
    order by a.id desc limit ${limit}`);
  return rows;
}
