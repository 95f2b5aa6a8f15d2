/** The rows of a day in Postgres, locked while they are copied. */
import { type SQL, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type pg from "pg";
import { DAY_MS } from "#lib/units.ts";
import { storedColumns } from "#model/archive-layout.ts";
import { type Span, toDay } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { copyQuery, copyToFile, readCopy } from "../postgres/copy.ts";
import { partitionName } from "../postgres/partitions.ts";
import { inOneTrip } from "../postgres/transaction.ts";
import { archiveFiles, rawBlocks } from "../schema/archive.ts";
import { eventAliases, wafEvents } from "../schema/events.ts";
import { type EventSum, rowSumIn } from "./day-files.ts";
import { toMoment } from "./search-condition.ts";

const e = alias(wafEvents, "e");
const b = alias(rawBlocks, "b");
const a = alias(eventAliases, "a");

/** About a megabyte: blocks are some tens of kilobytes. */
const BLOCKS_PER_FETCH = 8;

/** A zone's UTC day, `yyyy-mm-dd`. */
export interface ZoneDay {
  readonly zoneId: number;
  readonly day: string;
}

/**
 * Keeps the day's events and records from changing until the transaction ends; they can still be read. Waits two
 * seconds at most for writers, and the statements of this transaction have no time limit. Returns false if the day has
 * no partition.
 */
export async function lockDay(tx: Queryable, day: string): Promise<boolean> {
  await tx.execute(sql`set local lock_timeout = '2s'`);
  await tx.execute(sql`set local statement_timeout = 0`);
  await tx.execute(sql`set local idle_in_transaction_session_timeout = 0`);
  await lockArchiveDay(tx, day);
  const present = await findPartitions(tx, day);
  for (const name of present)
    await tx.execute(sql`lock table ${sql.identifier(name)} in share row exclusive mode`);
  return present.length > 0;
}

/** Returns the names of the day's partitions, in the order in which a page writes them; none if it has no events' partition. */
export async function findPartitions(tx: Queryable, day: string): Promise<string[]> {
  const names = (["waf_events", "raw_blocks"] as const).map((table) => partitionName(table, day));
  const { rows } = await tx.execute<{ name: string | null }>(
    sql`select to_regclass(name)::text as name from unnest(${sql.param(names)}::text[]) as given(name)`,
  );
  const present = rows.map(({ name }) => name);
  return present.includes(partitionName("waf_events", day))
    ? names.filter((name) => present.includes(name))
    : [];
}

/** A part of a day, of several zones. */
export interface DayPart extends Span {
  readonly zoneIds: readonly number[];
}

/**
 * Copies the events of a zone's day into a CSV file, in the order of an events file, and returns their number. Of a part of a day
 * the file has the column `zone_id` as well.
 */
export async function copyEvents(
  client: pg.PoolClient,
  zoneDay: ZoneDay,
  file: string,
  part: DayPart | null = null,
): Promise<number> {
  const columns = storedColumns().flatMap((name) =>
    name === "zone_id" && part === null ? [] : [name === "occurred_at" ? MS : name],
  );
  const from = part === null ? fromDay(zoneDay) : fromPart(zoneDay.day, part);
  const events = sql`select ${sql.raw(columns.join(", "))} ${from} order by ${e.occurredAt}, ${e.logId}`;
  return copyToFile(client, await copyQuery(client, events, "format csv"), file);
}

/** The milliseconds since 1970, as a whole number. */
const MS = "(extract(epoch from occurred_at) * 1000)::bigint";

/** Reads the day's partition by its name: planning for all of them would take longer. */
function fromDay({ zoneId, day }: ZoneDay): SQL {
  return sql`from ${sql.identifier(partitionName("waf_events", day))} ${e} where ${e.zoneId} = ${zoneId}`;
}

function fromPart(day: string, { zoneIds, from, to }: DayPart): SQL {
  return sql`from ${sql.identifier(partitionName("waf_events", day))} ${e}
    where ${e.zoneId} in (${sql.raw(zoneIds.map((id) => String(Math.trunc(id))).join(", "))})
      and ${e.occurredAt} >= ${toMoment(from)} and ${e.occurredAt} < ${toMoment(to)}`;
}

/** Returns number and sum of the events per hour of the day and rule, in order. */
export async function sumEvents(tx: Queryable, zoneDay: ZoneDay): Promise<EventSum[]> {
  const rule = sql`coalesce(${e.ruleId}, '')`;
  const { rows } = await tx.execute<{ hour: number; ruleId: string; events: number; sum: string }>(
    sql`select extract(hour from ${e.occurredAt} at time zone 'UTC')::integer as hour, ${rule} as "ruleId",
      count(*)::integer as events, sum(${sql.raw(rowSumIn("postgres"))})::text as sum
    ${fromDay(zoneDay)} group by 1, ${rule} order by 1, ${rule} collate "C"`,
  );
  return rows.map(({ sum, ...row }) => ({ ...row, sum: BigInt(sum) }));
}

/**
 * Yields eight bytes of hash per event in the order of an events file, packed, in chunks of whole hashes: the hashes by
 * which `raw_blocks` names its records.
 */
export function readEventHashes(client: pg.PoolClient, zoneDay: ZoneDay): AsyncGenerator<Buffer> {
  const hash = hashOf(e.occurredAt, e.logId);
  return readHashes(client, sql`select ${hash} ${fromDay(zoneDay)} order by ${e.occurredAt}, ${e.logId}`);
}

/**
 * Yields two hashes of eight bytes for each second time of an event, in chunks of whole pairs: the hash of that time and
 * the hash of the time under which the event is stored. One of the times is in the day.
 */
export function readOtherHashes(client: pg.PoolClient, { zoneId, day }: ZoneDay): AsyncGenerator<Buffer> {
  const start = `${day}T00:00:00.000Z`;
  const isInDay = (column: PgColumn) =>
    sql`${column} >= ${start}::timestamptz and ${column} < ${start}::timestamptz + interval '1 day'`;
  return readHashes(
    client,
    sql`select ${hashOf(a.otherAt, a.logId)} || ${hashOf(a.keptAt, a.logId)} from ${eventAliases} ${a}
      where ${a.zoneId} = ${zoneId} and ((${isInDay(a.keptAt)}) or (${isInDay(a.otherAt)}))`,
  );
}

function hashOf(time: PgColumn, logId: PgColumn): SQL {
  const key = sql`(extract(epoch from ${time}) * 1000)::bigint || ' ' || ${logId}`;
  return sql`encode(substr(sha256(convert_to(${key}, 'UTF8')), 1, 8), 'hex')`;
}

/** Yields the bytes of a column of hashes in hex, in chunks of whole rows. */
async function* readHashes(client: pg.PoolClient, hashes: SQL): AsyncGenerator<Buffer> {
  const stream = await copyQuery(client, hashes, "format text");
  let rest = "";
  for await (const chunk of readCopy(client, stream)) {
    const text = rest + String(chunk);
    const end = text.lastIndexOf("\n") + 1;
    rest = text.slice(end);
    yield Buffer.from(text.slice(0, end).replaceAll("\n", ""), "hex");
  }
}

interface SourceBlock {
  /** False for a block of another day, which holds a record of this day's events under another time. */
  readonly isOfDay: boolean;
  readonly logIdHashes: Buffer;
  readonly entryCount: number;
  readonly block: Buffer;
}

/**
 * Yields the blocks that may hold records of the day's events: the day's own in the order in which a search looks for a
 * record, then those of the days around it that hold an entry under a second time. Must run in a transaction.
 */
export async function* readDayBlocks(tx: Queryable, zoneDay: ZoneDay): AsyncGenerator<SourceBlock> {
  const [zone, day] = [sql.raw(String(Math.trunc(zoneDay.zoneId))), sql.raw(`'${zoneDay.day}'::date`)];
  await tx.execute(sql`
    declare day_blocks no scroll cursor for
    select ${b.day} = ${day} as "isOfDay", ${b.logIdHashes} as "logIdHashes", ${b.entryCount} as "entryCount",
      ${b.block}
    from ${rawBlocks} ${b}
    where ${b.zoneId} = ${zone} and ${b.day} between ${day} - 2 and ${day} + 2 and (${b.day} = ${day} or exists (
      select from ${eventAliases} ${a}
      where ${a.zoneId} = ${zone} and ${a.otherAt} between ${b.firstAt} and ${b.lastAt}
        and ${a.keptAt} >= ${day}::timestamp at time zone 'UTC'
        and ${a.keptAt} < (${day} + 1)::timestamp at time zone 'UTC'))
    order by ${b.day} <> ${day}, ${b.firstAt}, ${b.blockId}`);
  try {
    for (;;) {
      const { rows } = await tx.execute<SourceBlock & Record<string, unknown>>(
        sql.raw(`fetch ${BLOCKS_PER_FETCH} from day_blocks`),
      );
      if (rows.length === 0) return;
      yield* rows;
    }
  } finally {
    await tx.execute(sql`close day_blocks`);
  }
}

const f = alias(archiveFiles, "f");

/** First number of a pair of advisory lock numbers; the second is the day, counted from 1970. */
const DAY_LOCK = 7_603_102;

/** Waits for the pages of ingest that store events of this UTC day, and blocks new ones until the transaction ends. */
export async function lockArchiveDay(tx: Queryable, day: string): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${DAY_LOCK}, ${Date.parse(day) / DAY_MS}::integer)`);
}

/**
 * Returns those of the UTC days from `firstAt` to `lastAt` (epoch ms) that are archive days of the zone, and keeps the
 * others from becoming archive days until the transaction ends. Two statements in one round trip, because the second must
 * see what was committed while the first waited.
 */
export async function holdDays(
  tx: Queryable,
  client: pg.PoolClient,
  { zoneId, firstAt, lastAt }: { zoneId: number; firstAt: number; lastAt: number },
): Promise<ReadonlySet<string>> {
  const [from, to] = [Math.floor(firstAt / DAY_MS), Math.floor(lastAt / DAY_MS)];
  const [, found] = await inOneTrip(client, () => [
    keepArchiveWaiting(tx, from, to),
    tx.execute<{ day: string }>(sql`
      select ${f.day}::text from ${archiveFiles} ${f}
      where ${f.zoneId} = ${zoneId} and ${f.day} between ${toDay(firstAt)}::date and ${toDay(lastAt)}::date
        and ${f.kind} = 'events' and ${f.retiredAt} is null`),
  ]);
  return new Set(found.rows.map(({ day }) => day));
}

/** A separate function, because a bare statement would be sent only after the statements that functions have sent. */
async function keepArchiveWaiting(tx: Queryable, from: number, to: number): Promise<void> {
  await tx.execute(
    sql`select pg_advisory_xact_lock_shared(${DAY_LOCK}, day) from generate_series(${from}::integer, ${to}::integer) as day`,
  );
}
