import { and, desc, eq, sql, sum } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { wafEvents } from "../schema/events.ts";
import { channelStates, notifications } from "../schema/notifications.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { replicas } from "../schema/service.ts";

const b = alias(ruleBuckets, "b");
const w = alias(coverageWindows, "w");
const r = alias(replicas, "r");
const e = alias(wafEvents, "e");
const a = alias(alerts, "a");

/** Returns those of these zones that a process of the service watched lately, or that have stored data. */
export async function findKnownZones(db: Queryable, zoneIds: readonly number[]): Promise<number[]> {
  const { rows } = await db.execute<{ zoneId: number }>(sql`
    select z.zone_id as "zoneId" from unnest(${sql.param([...zoneIds])}::integer[]) as z(zone_id)
    where exists (select from ${coverageWindows} ${w} where ${w.zoneId} = z.zone_id)
      or exists (select from ${replicas} ${r} where z.zone_id = any(${r.zoneIds}))
      or exists (select from ${ruleBuckets} ${b} where ${b.zoneId} = z.zone_id)
      or exists (select from ${wafEvents} ${e} where ${e.zoneId} = z.zone_id)
      or exists (select from ${alerts} ${a} where ${a.zoneId} = z.zone_id)`);
  return rows.map(({ zoneId }) => zoneId);
}

/** Returns every zone that a process of the service watched lately, or that has a stored hour, by number. */
export async function listNamableZones(db: Queryable): Promise<number[]> {
  const { zoneId: zone } = coverageWindows;
  const watched = db.select({ zoneId: sql<number>`unnest(${replicas.zoneIds})` }).from(replicas);
  const rows = await db.select({ zoneId: zone }).from(coverageWindows).union(watched).orderBy(sql`1`);
  return rows.map(({ zoneId }) => zoneId);
}

/** Returns every channel that a message was ever written for, by name. */
export async function listUsedChannels(db: Queryable): Promise<string[]> {
  const written = db.select({ channel: notifications.channel }).from(notifications);
  const rows = await db
    .select({ channel: channelStates.channel })
    .from(channelStates)
    .union(written)
    .orderBy(sql`1`);
  return rows.map(({ channel }) => channel);
}

/** Returns whether the roll-up has events of the rule in the zone. */
export async function isCountedRule(db: Queryable, zoneId: number, ruleId: string): Promise<boolean> {
  const rows = await db
    .select({ ruleId: b.ruleId })
    .from(b)
    .where(and(eq(b.zoneId, zoneId), eq(b.ruleId, ruleId)))
    .limit(1);
  return rows.length > 0;
}

/** Returns the rules of the zone, those with the most events first. */
export async function listBusiestRules(db: Queryable, zoneId: number, limit: number): Promise<string[]> {
  const rows = await db
    .select({ ruleId: b.ruleId })
    .from(b)
    .where(and(eq(b.zoneId, zoneId), eq(b.width, 86_400)))
    .groupBy(b.ruleId)
    .orderBy(desc(sum(b.total)), b.ruleId)
    .limit(limit);
  return rows.map(({ ruleId }) => ruleId);
}
