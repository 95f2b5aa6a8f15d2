/** Which hours have been judged, and since when a zone is learnt. */
import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { MINUTE_MS } from "#lib/units.ts";
import type { CopiedHour } from "#model/covered-hour.ts";
import { isLearning, learningUntil, startOfHistory } from "#model/rules.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names, overwriting } from "../postgres/terms.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { judgedHours } from "../schema/sources.ts";
import { readFirstEventMinutes } from "./source-events.ts";

const j = alias(judgedHours, "j");
const w = alias(coverageWindows, "w");
const excluded = alias(judgedHours, "excluded");
const KEY = names(j.zoneId, j.startsAt);

/** First number of a pair of advisory lock numbers; the second is the zone. */
const ZONE_LOCK = 7_603_103;

/** The condition that every event of an hour is stored, as far as anybody knows. */
const IS_COPIED = sql`(${w.state} = 'sealed'
  or ${w.state} = 'open' and ${w.searchedThrough} >= ${w.startsAt} + interval '1 hour')`;

/** Returns the condition that every minute of an hour was judged with all events that are stored of it. */
export function judged({ events, rulesFrom, rulesThrough, startsAt }: typeof j, storedCount: SQL): SQL {
  return sql`coalesce(${events} = ${storedCount} and ${rulesFrom} <= ${startsAt}
    and ${rulesThrough} >= ${startsAt} + interval '1 hour', false)`;
}

const IS_JUDGED = judged(j, sql`${w.storedCount}`);
const JOINED = sql`${coverageWindows} ${w} left join ${judgedHours} ${j}
  on ${j.zoneId} = ${w.zoneId} and ${j.startsAt} = ${w.startsAt}`;

/** Minutes [from, through) of a zone, since the epoch. */
export interface JudgedMinutes {
  readonly zoneId: number;
  readonly from: number;
  readonly through: number;
}

/**
 * Notes minutes that the detector of rules has judged. They extend the judged part of their hours if they follow it without
 * a pause, and change nothing otherwise.
 */
export async function noteRuleMinutes(db: Queryable, spans: readonly JudgedMinutes[]): Promise<void> {
  if (spans.length === 0) return;
  const column = (read: (one: JudgedMinutes) => number) => sql.param(spans.map(read));
  await db.execute(sql`
    insert into ${judgedHours} as ${j} (${names(j.zoneId, j.startsAt, j.isLive, j.rulesFrom, j.rulesThrough)})
    select zone_id, to_timestamp(hour * 3600), true, to_timestamp(greatest(from_minute, hour * 60) * 60),
      to_timestamp(least(through, hour * 60 + 60) * 60)
    from unnest(${column(({ zoneId }) => zoneId)}::integer[], ${column(({ from }) => from)}::bigint[],
      ${column(({ through }) => through)}::bigint[]) as asked(zone_id, from_minute, through)
    cross join lateral generate_series(from_minute / 60, (through - 1) / 60) as hour
    order by zone_id, hour
    on conflict (${KEY}) do update set ${names(j.rulesFrom)} = least(${j.rulesFrom}, ${excluded.rulesFrom}),
      ${names(j.rulesThrough)} = greatest(${j.rulesThrough}, ${excluded.rulesThrough})
    where ${j.rulesThrough} is null
      or ${j.rulesThrough} >= ${excluded.rulesFrom} and ${j.rulesThrough} < ${excluded.rulesThrough}`);
}

/** An hour of which a number of events was judged. */
export interface JudgedHour {
  readonly zoneId: number;
  /** Since the epoch. */
  readonly hour: number;
  readonly events: number;
  readonly judgedWith: string;
}

/** Notes hours whose sources were judged. With `isWhole`, their rules were judged as well. */
export async function noteJudgedHours(
  db: Queryable,
  hours: readonly JudgedHour[],
  isWhole: boolean,
): Promise<void> {
  if (hours.length === 0) return;
  const column = <T>(read: (one: JudgedHour) => T) => sql.param(hours.map(read));
  const whole = isWhole ? sql`, ${overwriting(j.rulesFrom, j.rulesThrough)}` : sql``;
  await db.execute(sql`
    insert into ${judgedHours} as ${j} (${KEY}, ${names(j.events, j.judgedWith, j.judgedAt, j.rulesFrom, j.rulesThrough)})
    select zone_id, to_timestamp(hour::float8 * 3600), events, judged_with, now(),
      case when ${isWhole} then to_timestamp(hour::float8 * 3600) end,
      case when ${isWhole} then to_timestamp(hour::float8 * 3600 + 3600) end
    from unnest(${column(({ zoneId }) => zoneId)}::integer[], ${column(({ hour }) => hour)}::integer[],
      ${column(({ events }) => events)}::integer[], ${column((one) => one.judgedWith)}::text[])
      as asked(zone_id, hour, events, judged_with)
    order by zone_id, hour
    on conflict (${KEY}) do update set ${overwriting(j.events, j.judgedWith, j.judgedAt)}${whole}`);
}

/** Has the hours of a zone from `fromHour` on judged again, because they were judged without events that are there now. */
export async function forgetJudged(
  tx: Queryable,
  zoneId: number,
  fromHour: number,
  atMs: number,
): Promise<void> {
  const at = sql`least(${j.startsAt} + interval '1 hour', ${new Date(atMs)}::timestamptz)`;
  await tx.execute(sql`
    update ${judgedHours} ${j} set ${names(j.events)} = null, ${names(j.rulesFrom)} = ${at}, ${names(j.rulesThrough)} = ${at}
    where ${j.zoneId} = ${zoneId} and ${j.startsAt} >= to_timestamp(${fromHour}::float8 * 3600)`);
}

/** Locks the judgements of a zone until the commit, and returns whether an hour of [fromHour, toHour) is not judged yet. */
export async function lockUnjudged(
  tx: Queryable,
  zoneId: number,
  { fromHour, toHour }: { fromHour: number; toHour: number },
): Promise<boolean> {
  await tx.execute(sql`select pg_advisory_xact_lock(${ZONE_LOCK}, ${zoneId})`);
  const { rows } = await tx.execute(sql`
    select from ${JOINED} where ${w.zoneId} = ${zoneId} and ${IS_COPIED} and not ${IS_JUDGED}
      and ${w.startsAt} >= to_timestamp(${fromHour}::float8 * 3600)
      and ${w.startsAt} < to_timestamp(${toHour}::float8 * 3600) limit 1`);
  return rows.length > 0;
}

interface UnjudgedZone {
  readonly zoneId: number;
  readonly hours: number;
  /** Start of the oldest of these hours, epoch ms. */
  readonly oldestAt: number;
}

/** Returns the zones with hours that begin in [fromMs, toMs), that are copied and not judged. */
export async function readUnjudgedZones(
  db: Queryable,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<UnjudgedZone[]> {
  const { rows } = await db.execute<{ [Key in keyof UnjudgedZone]: UnjudgedZone[Key] }>(sql`
    select ${w.zoneId} as "zoneId", count(*)::integer as hours, ${epochMs(sql`min(${w.startsAt})`)} as "oldestAt"
    from ${JOINED} where ${w.startsAt} >= ${new Date(fromMs)} and ${w.startsAt} < ${new Date(toMs)}
      and ${IS_COPIED} and not ${IS_JUDGED}
    group by ${w.zoneId} order by "oldestAt", ${w.zoneId}`);
  return rows;
}

/** Returns the recorded hours of a zone that begin in [fromMs, toMs), oldest first. */
export async function readCopiedHours(
  db: Queryable,
  zoneId: number,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<CopiedHour[]> {
  const { rows } = await db.execute<{ [Key in keyof CopiedHour]: CopiedHour[Key] }>(sql`
    select (date_part('epoch', ${w.startsAt}) / 3600)::integer as hour, ${w.state} = 'gap' as "isGap",
      ${IS_COPIED} as "isCopied", ${IS_JUDGED} as "isJudged", ${w.storedCount} as events,
      ${w.searchedThrough} is not null as "isSearched", ${epochMs(w.lastNewAt)} as "lastNewAt",
      (date_part('epoch', ${j.rulesFrom}) / 60)::integer as "rulesFrom",
      (date_part('epoch', ${j.rulesThrough}) / 60)::integer as "rulesThrough"
    from ${JOINED} where ${w.zoneId} = ${zoneId} and ${w.startsAt} >= ${new Date(fromMs)}
      and ${w.startsAt} < ${new Date(toMs)}
    order by ${w.startsAt}`);
  return rows;
}

/** Returns whether ticks had judged a zone before an hour, so that the hour is not one before the first start. */
export async function wasWatchedBefore(db: Queryable, zoneId: number, hour: number): Promise<boolean> {
  const { rows } = await db.execute(sql`
    select from ${judgedHours} ${j} where ${j.zoneId} = ${zoneId} and ${j.isLive}
      and ${j.startsAt} < to_timestamp(${hour}::float8 * 3600) limit 1`);
  return rows.length > 0;
}

/** Returns when the first day ends (epoch ms) of the zones that are in it. */
export async function readLearning(
  db: Queryable,
  zoneIds: readonly number[],
  nowMs: number,
): Promise<ReadonlyMap<number, number>> {
  const found = await readFirstEventMinutes(db, zoneIds, startOfHistory(nowMs));
  const learning = [...found].filter(([, minute]) => isLearning(minute, nowMs / MINUTE_MS));
  return new Map(learning.map(([zoneId, minute]) => [zoneId, (learningUntil(minute) ?? 0) * MINUTE_MS]));
}
