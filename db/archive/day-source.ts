import { sql } from "drizzle-orm";
import type pg from "pg";
import { to as copyTo } from "pg-copy-streams";
import { EVENT_FILE_COLUMNS } from "../../src/model/archive-layout.ts";
import type { Queryable } from "../client.ts";
import { copyToFile, readCopy } from "../postgres/copy-out.ts";
import { partitionName } from "../postgres/partitions.ts";
import { lockArchiveDay } from "./day-lock.ts";
import { type EventSum, rowSumIn } from "./row-sum.ts";

/** About a megabyte: blocks are some tens of kilobytes. */
const BLOCKS_PER_FETCH = 8;

/** A zone's UTC day, `yyyy-mm-dd`. */
export interface ZoneDay {
  readonly zoneId: number;
  readonly day: string;
}

/**
 * Keeps the day's events and records from changing until the transaction ends; they can still be read. Waits two seconds at
 * most for writers, and the statements of this transaction have no time limit. Returns false if the day has no partition.
 */
export async function lockDay(tx: Queryable, day: string): Promise<boolean> {
  await tx.execute(sql`set local lock_timeout = '2s'`);
  await tx.execute(sql`set local statement_timeout = 0`);
  await tx.execute(sql`set local idle_in_transaction_session_timeout = 0`);
  await lockArchiveDay(tx, day);
  const names = (["waf_events", "raw_blocks"] as const).map((table) => partitionName(table, day));
  const { rows } = await tx.execute<{ name: string | null }>(
    sql`select to_regclass(name)::text as name from unnest(${sql.param(names)}::text[]) as given(name)`,
  );
  const present = rows.flatMap(({ name }) => (name === null ? [] : [name]));
  if (!present.includes(partitionName("waf_events", day))) return false;
  // In the order in which a page writes them.
  for (const name of names.filter((name) => present.includes(name)))
    await tx.execute(sql`lock table ${sql.identifier(name)} in share row exclusive mode`);
  return true;
}

/** Copies the events into a CSV file, in the order of an events file. Returns their number. */
export async function copyEvents(client: pg.PoolClient, zoneDay: ZoneDay, file: string): Promise<number> {
  const columns = EVENT_FILE_COLUMNS.flatMap(({ name }) =>
    name === "zone_id" ? [] : [name === "occurred_at" ? MS : name],
  );
  const stream = client.query(
    copyTo(
      `copy (select ${columns.join(", ")} ${fromDay(zoneDay)} order by occurred_at, log_id) to stdout (format csv)`,
    ),
  );
  return copyToFile(client, stream, file);
}

/** The milliseconds since 1970, as a whole number. */
const MS = "(extract(epoch from occurred_at) * 1000)::bigint";

/** Names and days come from this program, never from a caller: COPY takes no parameters. */
function fromDay({ zoneId, day }: ZoneDay): string {
  return `from ${partitionName("waf_events", day)} where zone_id = ${Math.trunc(zoneId)}`;
}

/** Returns number and sum of the events per hour of the day and rule, in order. */
export async function sumEvents(tx: Queryable, zoneDay: ZoneDay): Promise<EventSum[]> {
  const { rows } = await tx.execute<{ hour: number; ruleId: string; events: number; sum: string }>(
    sql.raw(`select extract(hour from occurred_at at time zone 'UTC')::integer as hour, coalesce(rule_id, '') as "ruleId",
      count(*)::integer as events, sum(${rowSumIn("postgres")})::text as sum
    ${fromDay(zoneDay)} group by 1, coalesce(rule_id, '') order by 1, coalesce(rule_id, '') collate "C"`),
  );
  return rows.map(({ sum, ...row }) => ({ ...row, sum: BigInt(sum) }));
}

/**
 * Yields eight bytes of hash per event in the order of an events file, packed, in chunks of whole hashes: the hashes by
 * which `raw_blocks` names its records.
 */
export async function* readEventHashes(client: pg.PoolClient, zoneDay: ZoneDay): AsyncGenerator<Buffer> {
  const hash = `encode(substr(sha256(convert_to(${MS} || ' ' || log_id, 'UTF8')), 1, 8), 'hex')`;
  const stream = client.query(
    copyTo(`copy (select ${hash} ${fromDay(zoneDay)} order by occurred_at, log_id) to stdout`),
  );
  let rest = "";
  for await (const chunk of readCopy(client, stream)) {
    const text = rest + String(chunk);
    const end = text.length - (text.length % HASH_LINE);
    rest = text.slice(end);
    yield Buffer.from(text.slice(0, end).replaceAll("\n", ""), "hex");
  }
}

const HASH_LINE = 17;

export interface SourceBlock {
  readonly logIdHashes: Buffer;
  readonly entryCount: number;
  readonly block: Buffer;
}

/** Yields the day's blocks in the order in which a search looks for a record. Must run in a transaction. */
export async function* readDayBlocks(tx: Queryable, { zoneId, day }: ZoneDay): AsyncGenerator<SourceBlock> {
  await tx.execute(sql`
    declare day_blocks no scroll cursor for
    select log_id_hashes as "logIdHashes", entry_count as "entryCount", block from raw_blocks
    where zone_id = ${sql.raw(String(Math.trunc(zoneId)))} and day = ${sql.raw(`'${day}'`)}::date
    order by first_at, block_id`);
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
