/** Blocks of records, and entries of days that are archived already. */
import { and, eq, gte, inArray, lte, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { toDay } from "#model/horizon.ts";
import { openRawBlock, packRawBlocks, type RawBlock } from "#model/raw-block.ts";
import {
  daysOf,
  type EventKey,
  hashEventKey,
  spanOf,
  unpackLogIdHashes,
  type WafEvent,
} from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { rawBlocks } from "../schema/archive.ts";
import { eventAliases, wafEvents } from "../schema/events.ts";
import type { NewQuarantinedEntry } from "./quarantine.ts";

const e = alias(wafEvents, "e");
const a = alias(eventAliases, "a");

export interface NewRawBlock {
  readonly day: string;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly entryCount: number;
  readonly logIdHashes: Buffer;
  readonly block: Buffer;
}

/**
 * Returns the packed id hashes of every block that may hold a record of this time span (epoch ms, both ends
 * included).
 */
export async function readLogIdHashes(db: Queryable, zoneId: number, span: BlockSpan): Promise<Buffer[]> {
  const found = await selectHashes(db, zoneId, span);
  return found.map(({ logIdHashes }) => logIdHashes);
}

/**
 * Packs the records that no block holds, neither a stored one nor one of `before`, which may not be stored yet. A crash
 * before the blocks are stored, or a second runner, at worst keeps one record twice.
 */
export async function packNewRecords(
  db: Queryable,
  zoneId: number,
  records: readonly (EventKey & { readonly raw: Buffer })[],
  before: readonly RawBlock[] = [],
): Promise<RawBlock[]> {
  const span = spanOf(records);
  if (span === null) return [];
  const { firstAt: fromMs, lastAt: toMs } = span;
  const packed = await readLogIdHashes(db, zoneId, { fromMs, toMs, days: daysOf(records) });
  const known = [...packed, ...before.map(({ logIdHashes }) => logIdHashes)];
  const kept = new Set(known.flatMap(unpackLogIdHashes));
  const entries = records.map((record) => ({ ...record, logIdHash: hashEventKey(record) }));
  return packRawBlocks(entries.filter(({ logIdHash }) => !kept.has(logIdHash)));
}

interface BlockSpan {
  readonly fromMs: number;
  readonly toMs: number;
  readonly days: readonly string[];
}

function selectHashes(db: Queryable, zoneId: number, { fromMs, toMs, days }: BlockSpan) {
  return db
    .select({ logIdHashes: rawBlocks.logIdHashes })
    .from(rawBlocks)
    .where(
      and(
        eq(rawBlocks.zoneId, zoneId),
        inArray(rawBlocks.day, [...days]),
        lte(rawBlocks.firstAt, new Date(toMs)),
        gte(rawBlocks.lastAt, new Date(fromMs)),
      ),
    );
}

/**
 * Returns the hours (epoch ms of their starts) of a span with an event whose record no block holds. Leaves out erased
 * events, events with a second time, under which the record may be kept, and events of the `unlisted` features.
 */
export async function readUnrecordedHours(
  db: Queryable,
  zoneId: number,
  span: BlockSpan,
  unlisted: readonly string[],
): Promise<number[]> {
  const hash = sql`encode(substr(sha256(convert_to(
    (extract(epoch from ${e.occurredAt}) * 1000)::bigint || ' ' || ${e.logId}, 'UTF8')), 1, 8), 'hex')`;
  const { rows } = await db.execute<{ hour: number }>(sql`
    with kept as materialized (
      select part[1] as hash from (${selectHashes(db, zoneId, span)}) as block
      cross join lateral regexp_matches(encode(log_id_hashes, 'hex'), '.{16}', 'g') as part)
    select distinct ${epochMs(sql`date_trunc('hour', ${e.occurredAt}, 'UTC')`)} as hour from ${wafEvents} ${e}
    where ${e.zoneId} = ${zoneId} and ${e.occurredAt} >= ${new Date(span.fromMs)}
      and ${e.occurredAt} < ${new Date(span.toMs)} and ${e.ip} is distinct from 'erased'
      and not coalesce(${e.feature} = any(${sql.param([...unlisted])}::text[]), false)
      and not exists (select from kept where kept.hash = ${hash})
      and not exists (select from ${eventAliases} ${a}
        where ${a.zoneId} = ${e.zoneId} and ${a.keptAt} = ${e.occurredAt} and ${a.logId} = ${e.logId})`);
  return rows.map(({ hour }) => hour);
}

export async function insertRawBlocks(
  db: Queryable,
  zoneId: number,
  blocks: readonly NewRawBlock[],
): Promise<void> {
  if (blocks.length === 0) return;
  await db.insert(rawBlocks).values(
    blocks.map(({ day, firstAt, lastAt, entryCount, logIdHashes, block }) => ({
      zoneId,
      day,
      firstAt: new Date(firstAt),
      lastAt: new Date(lastAt),
      entryCount,
      logIdHashes,
      block,
    })),
  );
}

export interface PageParts {
  readonly zoneId: number;
  readonly events: readonly WafEvent[];
  readonly quarantined: readonly NewQuarantinedEntry[];
  readonly rawBlocks: readonly NewRawBlock[];
}

/**
 * Moves a page's events and records of archive days to its quarantined entries, because an archive day does not change:
 * an event as JSON, a record as it was received.
 */
export async function setAsideArchived<P extends PageParts>(
  page: P,
  archived: ReadonlySet<string>,
): Promise<P> {
  if (archived.size === 0) return page;
  const isArchived = ({ occurredAt }: WafEvent) => archived.has(toDay(occurredAt));
  const events = page.events.filter(isArchived).map((event) => setAsideEvent(event, inArchive));
  const records = await setAsideRecords(
    page.rawBlocks.filter(({ day }) => archived.has(day)),
    inArchive,
  );
  return {
    ...page,
    events: page.events.filter((event) => !isArchived(event)),
    quarantined: [...page.quarantined, ...events, ...records],
    rawBlocks: page.rawBlocks.filter(({ day }) => !archived.has(day)),
  };
}

type ReasonOf = (day: string) => string;

/** Returns an event as a quarantined entry, from which it can be read again. */
export function setAsideEvent(event: WafEvent, reasonOf: ReasonOf): NewQuarantinedEntry {
  const day = toDay(event.occurredAt);
  return { route: event.route, day, reason: reasonOf(day), raw: Buffer.from(JSON.stringify(event)) };
}

/** Returns the records of blocks as quarantined entries. */
export async function setAsideRecords(
  blocks: readonly NewRawBlock[],
  reasonOf: ReasonOf,
): Promise<NewQuarantinedEntry[]> {
  const aside: NewQuarantinedEntry[] = [];
  for (const { day, block, entryCount } of blocks)
    for (const raw of await openRawBlock(block, entryCount))
      aside.push({ route: "list", day, reason: reasonOf(day), raw });
  return aside;
}

/** The reason for quarantining what could be stored if the pseudonym key were there. */
export const WAITS_FOR_KEY = "waits for the pseudonym key";

/** Returns the reason for quarantining what arrives for an archive day. */
export function inArchive(day: string): string {
  return `${day} is an archive day, which does not change any more`;
}
