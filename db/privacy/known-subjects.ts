import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/** Returns those of these zones that a process of the service watched lately, or that have stored data. */
export async function findKnownZones(db: Queryable, zoneIds: readonly number[]): Promise<number[]> {
  const { rows } = await db.execute<{ zoneId: number }>(sql`
    select z.zone_id as "zoneId" from unnest(${sql.param([...zoneIds])}::integer[]) as z(zone_id)
    where exists (select from coverage_windows w where w.zone_id = z.zone_id)
      or exists (select from replicas r where z.zone_id = any(r.zone_ids))
      or exists (select from rule_buckets b where b.zone_id = z.zone_id)
      or exists (select from waf_events e where e.zone_id = z.zone_id)
      or exists (select from alerts a where a.zone_id = z.zone_id)`);
  return rows.map(({ zoneId }) => zoneId);
}

/** Returns every zone that a process of the service watched lately, or that has a stored hour, by number. */
export async function listNamableZones(db: Queryable): Promise<number[]> {
  const { rows } = await db.execute<{ zoneId: number }>(sql`
    select zone_id as "zoneId" from coverage_windows
    union select unnest(zone_ids) from replicas order by 1`);
  return rows.map(({ zoneId }) => zoneId);
}

/** Returns every channel that a message was ever written for, by name. */
export async function listUsedChannels(db: Queryable): Promise<string[]> {
  const { rows } = await db.execute<{ channel: string }>(
    sql`select channel from channel_states union select channel from notifications order by 1`,
  );
  return rows.map(({ channel }) => channel);
}

/** Returns whether the roll-up has events of the rule in the zone. */
export async function isCountedRule(db: Queryable, zoneId: number, ruleId: string): Promise<boolean> {
  const { rows } = await db.execute<{ isCounted: boolean }>(sql`
    select exists (select from rule_buckets where zone_id = ${zoneId} and rule_id = ${ruleId}) as "isCounted"`);
  return rows[0]?.isCounted === true;
}

/** Returns the rules of the zone, those with the most events first. */
export async function listBusiestRules(db: Queryable, zoneId: number, limit: number): Promise<string[]> {
  const { rows } = await db.execute<{ ruleId: string }>(sql`
    select rule_id as "ruleId" from rule_buckets where zone_id = ${zoneId} and width = 86400
    group by rule_id order by sum(total) desc, rule_id limit ${limit}`);
  return rows.map(({ ruleId }) => ruleId);
}
