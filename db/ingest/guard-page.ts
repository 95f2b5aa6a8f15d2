import { type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { type EventKey, findPositions, spanOf } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { ERASED_IP, eraseEvents, isEmptied } from "../people/erase-events.ts";
import { addOtherTimes, type RecordEraser, readKeptTimes } from "../people/erase-records.ts";
import { addErased } from "../people/erasures.ts";
import { holdTombstones, type TombstoneRow } from "../people/tombstones.ts";
import { epochMs, names } from "../postgres/terms.ts";
import type { Transaction } from "../postgres/transaction.ts";
import { wafEvents } from "../schema/events.ts";
import { lacksOf, unmasksOf } from "./event-rows.ts";
import type { NewQuarantinedEntry } from "./quarantine.ts";
import { type NewRawBlock, type PageParts, setAsideRecords, WAITS_FOR_KEY } from "./raw-blocks.ts";

/** Upper limit for the age of a page's events: ingest takes none that is older than ten days. */
const OLDEST_ENTRY_MS = 11 * 86_400_000;

const e = alias(wafEvents, "e");
/** Staged events: a temporary table with the columns of `waf_events`. */
const s = alias(wafEvents, "s");

/** Keeps erased data from being stored again. Called only if there are tombstones. */
export interface ErasureGuard extends RecordEraser {
  /**
   * Returns the judge, or null if the key in use is missing: without the key nothing can decide what these tombstones
   * cover.
   */
  judge(tombstones: readonly TombstoneRow[]): Promise<ErasureJudge | null>;
  /** Returns the parts of an unreadable entry that may be kept. */
  eraseUnreadable(entry: Unreadable, covers: (ip: string) => boolean): Promise<Unreadable>;
}

type Unreadable = Pick<NewQuarantinedEntry, "raw" | "reason">;

interface ErasureJudge {
  /** Matches the tombstones that were made with the key in use. */
  readonly match: Match;
  /** The other tombstones. Their key was given up, so nothing can decide what they cover. */
  readonly orphans: readonly TombstoneRow[];
}

/** Returns until when (epoch ms) an address's events are erased, or null if they are not. */
type Match = (ip: string) => number | null;

/** An erasure in progress. Its receipt counts what was emptied for it, by any transaction. */
interface OpenErasure {
  readonly id: number;
  readonly match: Match;
}

/** Counts of the data that was emptied for one erasure. */
interface Emptied {
  readonly id: number;
  readonly events: number;
  readonly records: number;
}

/** The parts of a page that an erasure may cover. */
export interface GuardedPage extends PageParts {
  /** Epoch ms. */
  readonly storedAt: number;
  /** Without a guard, a page that a tombstone may cover is refused. */
  readonly erasures?: ErasureGuard | undefined;
  /** Since when the page's quarantined entries may be, epoch ms. Left out: since its first event, or as far back as ingest reads. */
  readonly entriesFrom?: number;
  /** True for entries of the quarantine: without the pseudonym key the call fails and holds nothing. */
  readonly mustJudge?: boolean;
}

/** Thrown if entries that only the missing pseudonym key can judge must be judged now. */
export class KeyMissingError extends Error {
  override readonly name = "KeyMissingError";
}

/** The protection of a page against storing erased data again. */
export type Cover =
  | { readonly kind: "none" }
  | {
      readonly kind: "judged";
      readonly tombstones: readonly TombstoneRow[];
      readonly judge: ErasureJudge;
      readonly guard: ErasureGuard;
    }
  /** Data up to `untilMs` cannot be judged yet. */
  | { readonly kind: "held"; readonly untilMs: number };

/** Returns what protects a page. Erasures of the page's time do not change until the transaction ends. */
export async function planCover({ tx, client }: Transaction, page: GuardedPage): Promise<Cover> {
  const { zoneId, events, quarantined, storedAt, erasures: guard } = page;
  // A page without new content needs no judgement.
  if (events.length === 0 && quarantined.length === 0) return { kind: "none" };
  const { firstAt, lastAt: untilMs } = spanOf(events) ?? {
    firstAt: storedAt - OLDEST_ENTRY_MS,
    lastAt: storedAt,
  };
  const sinceMs = Math.min(firstAt, page.entriesFrom ?? firstAt);
  const tombstones = await holdTombstones(tx, client, { zoneId, sinceMs, untilMs });
  if (tombstones.length === 0) return { kind: "none" };
  if (guard === undefined)
    throw new Error("Cannot store this page: it may contain erased events and no erasure guard was given.");
  const judge = await guard.judge(tombstones);
  if (judge !== null) return { kind: "judged", tombstones, judge, guard };
  if (page.mustJudge === true)
    throw new KeyMissingError("Entries of the quarantine cannot be stored without the pseudonym key.");
  return { kind: "held", untilMs: lastUntil(tombstones) };
}

/** Returns until when (epoch ms) the latest of these erasures covers events. */
export function lastUntil(tombstones: readonly TombstoneRow[]): number {
  return Math.max(...tombstones.map(({ untilAt }) => untilAt));
}

interface Guarded extends Pick<GuardedPage, "quarantined" | "rawBlocks"> {
  readonly emptied: readonly Emptied[];
}

/**
 * Empties what is covered: stored events, the page's records and its quarantined entries. Without a judge, holds back
 * blocks with at least one record that may be covered, and entries, whose time is not known.
 */
export async function guardOthers(tx: Queryable, page: GuardedPage, cover: Cover): Promise<Guarded> {
  const { zoneId, events, quarantined, rawBlocks } = page;
  if (cover.kind === "none") return { emptied: [], quarantined, rawBlocks };
  if (cover.kind === "held") {
    const isHeld = ({ firstAt }: NewRawBlock) => firstAt <= cover.untilMs;
    const records = await setAsideRecords(rawBlocks.filter(isHeld), () => WAITS_FOR_KEY);
    return {
      emptied: [],
      quarantined: [...quarantined, ...records].map((entry) => ({ ...entry, isHeld: true })),
      rawBlocks: rawBlocks.filter((block) => !isHeld(block)),
    };
  }
  const { judge, guard, tombstones } = cover;
  const span = spanOf(events);
  const open = span === null ? [] : await matchOpen(tombstones, guard);
  const { erased, emptied } =
    span === null
      ? { erased: [], emptied: [] }
      : await eraseCovered(tx, zoneId, span, { match: judge.match, open, eraser: guard });
  return {
    emptied,
    quarantined: await eraseFromQuarantine(quarantined, judge, guard),
    rawBlocks: await eraseFromBlocks(rawBlocks, erased, guard),
  };
}

/**
 * Empties the covered events in the time span of a page, once the page is merged. Returns the keys of all erased
 * events there with their aliases, and their counts for erasures in progress. An event with an alias in the span
 * counts as in the span.
 * The span may hold more covered events than the page's own. An event may have been stored before under a masked
 * address that could not be matched. An erasure that runs at the same time may not have reached the event yet and
 * would not see the page's records.
 */
async function eraseCovered(
  tx: Queryable,
  zoneId: number,
  { firstAt, lastAt }: { firstAt: number; lastAt: number },
  { match, open, eraser }: { match: Match; open: readonly OpenErasure[]; eraser: RecordEraser },
): Promise<{ erased: EventKey[]; emptied: Emptied[] }> {
  const shown = selectShown(
    zoneId,
    { firstAt, lastAt },
    await readKeptTimes(tx, zoneId, { firstAt, lastAt }),
  );
  const addresses = await tx.execute<{ ip: string }>(
    sql`select distinct ip from (${shown}) shown where ip <> ''`,
  );
  const until = new Map(addresses.rows.map(({ ip }) => [ip, ip === ERASED_IP ? Infinity : match(ip)]));
  const covered = [...until.keys()].filter((ip) => until.get(ip) != null);
  if (covered.length === 0) return { erased: [], emptied: [] };
  const { rows } = await tx.execute<
    EventKey & { ip: string; isEmpty: boolean } & Record<string, unknown>
  >(sql`
    select ${epochMs(sql`occurred_at`)} as "occurredAt", log_id as "logId", ip,
      ${isEmptied(e)} as "isEmpty"
    from (${shown}) e where ip = any(${sql.param(covered)}::text[])
    order by occurred_at, log_id`);
  const erased = rows.filter(({ occurredAt, ip }) => occurredAt <= (until.get(ip) ?? 0));
  const full = erased.filter(({ isEmpty }) => !isEmpty);
  const idOf = ({ occurredAt, ip }: (typeof full)[number]) =>
    open.find((erasure) => occurredAt <= (erasure.match(ip) ?? 0))?.id ?? null;
  const emptied: Emptied[] = [];
  for (const [id, events] of Map.groupBy(full, idOf)) {
    const counts = await eraseEvents(tx, zoneId, events, eraser);
    if (id !== null) emptied.push({ id, ...counts });
  }
  return { erased: await addOtherTimes(tx, zoneId, erased), emptied };
}

/** Returns the query for the events in a page's time span, and for those that the page may show under a second time. */
function selectShown(
  zoneId: number,
  { firstAt, lastAt }: { firstAt: number; lastAt: number },
  doubles: readonly EventKey[],
): SQL {
  const columns = sql`${e.occurredAt}, ${e.logId}, ${e.ip}, ${e.ua}, ${e.url}, ${e.ja4}, ${e.message},
    ${e.requestId}, ${e.matchedKey}`;
  const inTime = (from: number, to: number) =>
    sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} between ${new Date(from)} and ${new Date(to)}`;
  const inSpan = sql`select ${columns} from ${wafEvents} ${e} where ${inTime(firstAt, lastAt)}`;
  if (doubles.length === 0) return inSpan;
  const times = doubles.map(({ occurredAt }) => occurredAt);
  return sql`${inSpan} union
    select ${columns} from ${wafEvents} ${e} where ${inTime(Math.min(...times), Math.max(...times))}
      and (${e.occurredAt}, ${e.logId}) in (select to_timestamp(at / 1000)::timestamptz(3), id
        from unnest(${sql.param(times)}::float8[], ${sql.param(doubles.map(({ logId }) => logId))}::text[]) as k(at, id))`;
}

/**
 * Adds the counts to the receipts. Runs last in its transaction: transactions of all zones lock the same row, so the
 * holder must not wait for another lock.
 */
export async function enterEmptied(tx: Queryable, emptied: readonly Emptied[]): Promise<void> {
  // Sorted, so that two pages that empty for the same two erasures lock them in the same order and cannot deadlock.
  for (const { id, ...counts } of emptied.toSorted((one, other) => one.id - other.id))
    await addErased(tx, id, counts);
}

/** Returns a page's records without those of erased events, whichever route showed the events first. */
function eraseFromBlocks(
  blocks: readonly NewRawBlock[],
  erased: readonly EventKey[],
  eraser: RecordEraser,
): Promise<NewRawBlock[]> {
  return Promise.all(
    blocks.map(async (block) => {
      const positions = findPositions(block.logIdHashes, erased);
      return positions.length === 0 ? block : { ...block, block: await eraser.erase(block.block, positions) };
    }),
  );
}

/**
 * Erases from unreadable entries. The time of an unreadable entry is not known, so every tombstone counts. An orphan
 * may cover any address.
 */
function eraseFromQuarantine(
  entries: readonly NewQuarantinedEntry[],
  { match, orphans }: ErasureJudge,
  guard: ErasureGuard,
): Promise<NewQuarantinedEntry[]> {
  const covers = (ip: string) => orphans.length > 0 || match(ip) !== null;
  return Promise.all(
    entries.map(async (entry) => ({ ...entry, ...(await guard.eraseUnreadable(entry, covers)) })),
  );
}

/** Returns the erasures in progress, each with a matcher of its own tombstones. */
async function matchOpen(tombstones: readonly TombstoneRow[], guard: ErasureGuard): Promise<OpenErasure[]> {
  const open: OpenErasure[] = [];
  for (const one of tombstones) {
    const judge = one.isOpen ? await guard.judge([one]) : null;
    if (judge !== null) open.push({ id: one.id, match: judge.match });
  }
  return open;
}

interface StagedSpan {
  readonly zoneId: number;
  /** Only events up to this time; epoch ms. */
  readonly untilMs: number;
}

/**
 * Removes the staged events up to `untilMs` and returns their keys. An event that is stored and that the page would not
 * change stays staged, because it was judged before.
 */
export async function takeStaged(tx: Queryable, { zoneId, untilMs }: StagedSpan): Promise<EventKey[]> {
  const { rows } = await tx.execute<{ occurredAt: number; logId: string }>(sql`
    delete from staged_events s
    where ${s.occurredAt} <= ${new Date(untilMs)} and not exists (
      ${selectStored({ zoneId, untilMs })} and not (${lacksOf(e, s)} or ${unmasksOf(e, s)}))
    returning ${epochMs(sql`${s.occurredAt}`)} as "occurredAt", ${s.logId} as "logId"`);
  return rows;
}

/**
 * Removes all personal data from staged events up to `untilMs`, because nothing can decide any more which of them an
 * erasure covers. A new event is staged as an erased one. A stored event keeps its values and gains only values that
 * say nothing about a person.
 */
export async function blankStaged(tx: Queryable, { zoneId, untilMs }: StagedSpan): Promise<void> {
  const isMeant = sql`${s.occurredAt} <= ${new Date(untilMs)}`;
  const isStored = sql`exists (${selectStored({ zoneId, untilMs })})`;
  const { ip, ja4, ua, url, message, requestId, matchedKey } = wafEvents;
  const personal = [ja4, ua, url, message, requestId];
  const setAll = (value: "null" | "''") =>
    sql.join(
      personal.map((column) => sql`${names(column)} = ${sql.raw(value)}`),
      sql`, `,
    );
  await tx.execute(sql`
    update staged_events s set ${names(ip)} = null, ${names(matchedKey)} = null, ${setAll("null")} where ${isMeant} and ${isStored}`);
  await tx.execute(sql`
    update staged_events s set ${names(ip)} = ${ERASED_IP}, ${names(matchedKey)} = null, ${setAll("''")} where ${isMeant} and not ${isStored}`);
}

/** Returns the query for the stored event of a staged one. */
function selectStored({ zoneId, untilMs }: StagedSpan) {
  return sql`select from ${wafEvents} e
    where ${e.zoneId} = ${zoneId} and ${e.occurredAt} = ${s.occurredAt} and ${e.logId} = ${s.logId}
      and ${e.occurredAt} <= ${new Date(untilMs)}`;
}
