/** Custom conditions: those that people added, and what was counted for all of them. */
import { and, asc, eq, gte, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { CustomCondition } from "#model/custom-condition.ts";
import { columnOf, type SearchColumn, toColumnSql } from "#model/fields.ts";
import type { SearchClause } from "#model/search-condition.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { isAsked } from "../archive/search-condition.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";
import { changedMinutes } from "../schema/forwarding.ts";
import { conditionMinutes, conditionZones, customConditions, spikes } from "../schema/spikes.ts";

const c = alias(customConditions, "c");
const e = alias(wafEvents, "e");
const m = alias(conditionMinutes, "m");
const z = alias(conditionZones, "z");

export type CustomConditionRow = typeof customConditions.$inferSelect;

/** Returns the conditions that people added, by their names. */
export function listCustomConditions(db: Queryable): Promise<CustomConditionRow[]> {
  return db.select().from(c).orderBy(asc(c.name));
}

/** Returns a text that changes whenever one is added or removed. */
export async function readConditionsVersion(db: Queryable): Promise<string> {
  const [row] = await db.select({ version: sql<string>`concat(count(*), '/', max(${c.id}))` }).from(c);
  return row?.version ?? "";
}

/** Has additions wait for each other until the end of the transaction, because together they must not be too many. */
export async function lockCustomConditions(tx: Queryable): Promise<void> {
  await tx.execute(sql`lock table ${customConditions} in share row exclusive mode`);
}

/** Returns null if there is one of this name. */
export async function insertCustomCondition(
  tx: Queryable,
  condition: CustomCondition,
  createdBy: string,
): Promise<CustomConditionRow | null> {
  const values = { name: condition.name, condition, createdBy };
  const [row] = await tx.insert(customConditions).values(values).onConflictDoNothing().returning();
  return row ?? null;
}

export async function deleteCustomCondition(tx: Queryable, name: string): Promise<void> {
  await tx.delete(customConditions).where(eq(customConditions.name, name));
}

/** Returns in which zones which conditions hold, by their rule ids. */
export function listHolding(db: Queryable): Promise<{ zoneId: number; ruleId: string }[]> {
  return db
    .select({ zoneId: spikes.zoneId, ruleId: spikes.ruleId })
    .from(spikes)
    .where(sql`${spikes.closedAt} is null and ${spikes.kind} = 'custom-condition'`)
    .orderBy(spikes.zoneId);
}

/** Returns the zones that are counted, whether something changed since, and whether a condition holds there. */
export async function listCountedZones(db: Queryable) {
  const { rows } = await db.execute<{ zoneId: number; hasChanged: boolean; holds: boolean }>(sql`
    select ${z.zoneId} as "zoneId",
      coalesce((select max(${changedMinutes.seq}) from ${changedMinutes} where ${changedMinutes.zoneId} = ${z.zoneId}) > ${z.seq}, false)
        as "hasChanged",
      exists (select from ${spikes} where ${spikes.zoneId} = ${z.zoneId} and ${spikes.closedAt} is null
        and ${spikes.kind} = 'custom-condition') as holds
    from ${conditionZones} ${z}`);
  return new Map(rows.map(({ zoneId, ...state }) => [zoneId, state]));
}

export type CountedZone = typeof conditionZones.$inferSelect;

/** Locks the zone for this transaction; null while another transaction has it. Changes before the first call are not counted. */
export async function lockCountedZone(tx: Queryable, zoneId: number): Promise<CountedZone | null> {
  await tx.execute(sql`
    insert into ${conditionZones} (${names(z.zoneId, z.seq)})
    select ${zoneId}, coalesce(max(${changedMinutes.seq}), 0) from ${changedMinutes}
    where ${changedMinutes.zoneId} = ${zoneId} on conflict do nothing`);
  const [row] = await tx.select().from(z).where(eq(z.zoneId, zoneId)).for("update", { skipLocked: true });
  return row ?? null;
}

export async function storeCountedZone(tx: Queryable, { zoneId, seq, counted }: CountedZone): Promise<void> {
  await tx.update(conditionZones).set({ seq, counted }).where(eq(conditionZones.zoneId, zoneId));
}

/** Forgets a zone without conditions. */
export async function removeCountedZone(tx: Queryable, zoneId: number): Promise<void> {
  await removeCounts(tx, zoneId, []);
  await tx.delete(conditionZones).where(eq(conditionZones.zoneId, zoneId));
}

/** The columns of events that clauses can test. Parts of the URL are computed from it. */
export interface ConditionEvent
  extends Pick<WafEvent, "feature" | "ruleId" | "ip" | "ja4" | "ua" | "url" | "asn" | "country">,
    Pick<WafEvent, "action" | "message" | "logId"> {
  /** Epoch ms. */
  readonly at: number;
}

/** Events that are read at once. */
const PAGE = 5_000;

/** Yields the events of [fromMs, toMs) in parts. */
export async function* readMinutes(
  tx: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): AsyncGenerator<ConditionEvent[]> {
  const { feature, ruleId, ip, ja4, ua, url, asn, country, action, message, logId } = e;
  const columns = { feature, ruleId, ip, ja4, ua, url, asn, country, action, message, logId };
  let after = sql`(to_timestamp(${fromMs / 1_000}), '')`;
  for (;;) {
    const part = await tx
      .select({ ...columns, at: epochMs(e.occurredAt) })
      .from(e)
      .where(
        sql`${e.zoneId} = ${zoneId} and (${e.occurredAt}, ${e.logId}) >= ${after}
          and ${e.occurredAt} < to_timestamp(${toMs / 1_000})`,
      )
      .orderBy(asc(e.occurredAt), asc(e.logId))
      .limit(PAGE);
    const last = part.at(-1);
    if (last !== undefined) yield part;
    if (last === undefined || part.length < PAGE) return;
    // The least text after this one.
    after = sql`(to_timestamp(${last.at / 1_000}), ${`${last.logId}\u0001`})`;
  }
}

/** A count of a minute, epoch ms. */
export interface CountedMinute {
  readonly counts: string;
  readonly minuteMs: number;
  readonly count: number;
  readonly values: readonly number[] | null;
}

/** Replaces the counts of minutes: nothing is added, so that counting twice is harmless. */
export async function replaceMinutes(
  tx: Queryable,
  zoneId: number,
  minutesMs: readonly number[],
  counted: readonly CountedMinute[],
): Promise<void> {
  const starts = sql`(select to_timestamp(ms::float8 / 1000) from unnest(${sql.param([...minutesMs])}::bigint[]) as ms)`;
  await tx.execute(
    sql`delete from ${conditionMinutes} ${m} where ${m.zoneId} = ${zoneId} and ${m.minute} in ${starts}`,
  );
  await addMinutes(tx, zoneId, counted);
}

async function addMinutes(tx: Queryable, zoneId: number, counted: readonly CountedMinute[]): Promise<void> {
  if (counted.length === 0) return;
  await tx.execute(sql`
    insert into ${conditionMinutes} (${names(m.zoneId, m.counts, m.minute, m.count, m.values)})
    select ${zoneId}, counts, to_timestamp(ms::float8 / 1000), count,
      case when values is null then null else array(select jsonb_array_elements_text(values)::bigint) end
    from jsonb_to_recordset(${JSON.stringify(counted.map(({ minuteMs, ...one }) => ({ ...one, ms: minuteMs })))}::jsonb)
      as counted(counts text, ms bigint, count integer, "values" jsonb)
    on conflict (${names(m.zoneId, m.counts, m.minute)}) do update
      set ${names(m.count)} = excluded.count, ${names(m.values)} = excluded.values`);
}

/** The SQL of `hashValue`. */
const toHash = (text: SQL) => sql`('x' || substr(md5(${text}), 1, 12))::bit(48)::bigint`;

/** Counts the minutes of a condition that is new in the zone by a search, from `fromMs` on. */
export async function countBySearch(
  tx: Queryable,
  zoneId: number,
  asked: {
    readonly counts: string;
    readonly clauses: readonly SearchClause[];
    readonly distinct: SearchColumn | null;
    readonly most: number;
    readonly fromMs: number;
    readonly toMs: number;
  },
): Promise<void> {
  const { counts, clauses, distinct, most, fromMs: from, toMs: to } = asked;
  const value = distinct === null ? null : sql.raw(toColumnSql(columnOf(distinct), "e."));
  const hashes =
    value === null
      ? sql`null::bigint[]`
      : sql`(array_agg(distinct ${toHash(sql`${value}`)}) filter (where ${value} <> ''))[1:${sql.raw(String(most))}]`;
  await tx.execute(sql`
    insert into ${conditionMinutes} (${names(m.zoneId, m.counts, m.minute, m.count, m.values)})
    select ${zoneId}, ${counts}, date_trunc('minute', ${e.occurredAt}), count(*)::integer, ${hashes}
    from ${wafEvents} ${e} where ${isAsked(zoneId, { from, to, clauses })} group by 3
    on conflict do nothing`);
}

/** Returns what was counted from a time on, by the names of the counts. */
export async function readCountedMinutes(
  tx: Queryable,
  zoneId: number,
  fromMs: number,
): Promise<ReadonlyMap<string, CountedMinute[]>> {
  const rows = await tx
    .select({ counts: m.counts, minuteMs: epochMs(m.minute), count: m.count, values: m.values })
    .from(m)
    .where(and(eq(m.zoneId, zoneId), gte(m.minute, new Date(fromMs))));
  return Map.groupBy(rows, ({ counts }) => counts);
}

/** Removes the counts of these conditions before a time, and all counts of others. */
export async function removeCounts(
  tx: Queryable,
  zoneId: number,
  kept: readonly { readonly counts: string; readonly fromMs: number }[],
): Promise<void> {
  await tx.execute(sql`
    delete from ${conditionMinutes} ${m} where ${m.zoneId} = ${zoneId} and not exists (
      select from jsonb_to_recordset(${JSON.stringify(kept)}::jsonb) as kept(counts text, "fromMs" float8)
      where kept.counts = ${m.counts} and ${m.minute} >= to_timestamp(kept."fromMs" / 1000))`);
}

/** Returns the newest spike of each condition of a zone, open or closed after a time, by their rule ids. */
export async function readConditionSpikes(tx: Queryable, zoneId: number, closedAfterMs: number) {
  const rows = await tx
    .selectDistinctOn([spikes.ruleId])
    .from(spikes)
    .where(
      sql`${spikes.zoneId} = ${zoneId} and ${spikes.kind} = 'custom-condition'
        and (${spikes.closedAt} is null or ${spikes.closedAt} > ${new Date(closedAfterMs)})`,
    )
    .orderBy(spikes.ruleId, sql`${spikes.id} desc`);
  return new Map(rows.map((row) => [row.ruleId, row]));
}
