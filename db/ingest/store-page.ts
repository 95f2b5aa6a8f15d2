import { sql } from "drizzle-orm";
import { readSqlState } from "#lib/sql-state.ts";
import { startOfDay } from "#model/horizon.ts";
import { holdDays } from "../archive/day-lock.ts";
import type { Database, Queryable } from "../client.ts";
import { inOneTrip } from "../postgres/one-trip.ts";
import { inTransaction, type Transaction } from "../postgres/transaction.ts";
import { holdTombstones, type TombstoneRow } from "../privacy/tombstones.ts";
import { assertFence } from "../service/leases.ts";
import {
  type Emptied,
  type ErasureGuard,
  type ErasureJudge,
  enterEmptied,
  eraseCovered,
  eraseFromBlocks,
  eraseFromQuarantine,
  matchOpen,
} from "./guard-page.ts";
import { blankStaged, holdStaged, insertHeldBlocks } from "./hold-page.ts";
import { type NewQuarantinedEntry, quarantineEntries } from "./quarantine.ts";
import { insertRawBlocks, type NewRawBlock } from "./raw-blocks.ts";
import { setAsideArchived } from "./set-aside-archived.ts";
import {
  copyNewEvents,
  mergeEvents,
  mergeStaged,
  type NewEvents,
  recordCounts,
  type StoredEvents,
  stageEvents,
} from "./store-events.ts";

const UNIQUE_VIOLATION = "23505";
/** Upper limit for the age of a page's events: ingest takes none that is older than ten days. */
const OLDEST_ENTRY_MS = 11 * 86_400_000;

export interface NewPage {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly fence: number };
  readonly events: NewEvents;
  readonly expectNew: boolean;
  /** Stored as the time at which the hours last gained an event; epoch ms. */
  readonly storedAt: number;
  readonly quarantined: readonly NewQuarantinedEntry[];
  readonly rawBlocks: readonly NewRawBlock[];
  /** Without a guard, a page that a tombstone may cover is refused. */
  readonly erasures?: ErasureGuard | undefined;
  /** True if the page was held back before. Without the pseudonym key the call then fails and holds nothing. */
  readonly mustJudge?: boolean;
}

export interface StoredPage {
  readonly inserted: number;
  readonly filled: number;
  readonly quarantined: number;
  /** Sealed hours that gained an event and were reopened; epoch ms of their starts. */
  readonly reopened: readonly number[];
  /** Events held back for the first time, because the pseudonym key is missing. */
  readonly held: number;
}

type Conclude<T> = (tx: Queryable, stored: StoredPage) => Promise<T>;

/**
 * Stores one page of the platform in one transaction: events, stale minutes, hour counts, records, quarantined
 * entries, and whatever `conclude` adds (ledger, cursor). Stores nothing if another process has taken the lease over.
 * With `expectNew` the events are copied straight into the table. They are staged in a second transaction only if one
 * of them is already stored. Pass it if the page before had only new events. Erased data is never stored again. While
 * the pseudonym key is missing, events that an erasure may cover are held back and the rest is stored. Events and records
 * of archive days are quarantined.
 * @throws {FenceLostError}
 */
export async function storePage<T>(
  database: Database,
  page: NewPage,
  conclude: Conclude<T>,
): Promise<{ stored: StoredPage; concluded: T }> {
  if (!page.expectNew || page.events.size === 0) return mergePage(database, page, conclude);
  try {
    return (await copyPage(database, page, conclude)) ?? (await mergePage(database, page, conclude));
  } catch (thrown) {
    if (readSqlState(thrown) !== UNIQUE_VIOLATION) throw thrown;
    return mergePage(database, page, conclude);
  }
}

/**
 * Copies the page. Returns null and stores nothing if a tombstone may cover an event, because such a page has to be
 * staged.
 */
function copyPage<T>(database: Database, page: NewPage, conclude: Conclude<T>) {
  return inTransaction(database, async ({ tx, client }) => {
    const { zoneId, events, lease, storedAt } = page;
    if ((await readArchived({ tx, client }, page)).size > 0) return null;
    if ((await readCovering({ tx, client }, page)).length > 0) return null;
    if (await hasAliases(tx, zoneId, events)) return null;
    await copyNewEvents(client, events);
    const quarantined = await quarantineEntries(tx, zoneId, page.quarantined);
    const stored = { inserted: events.size, filled: 0, quarantined, reopened: [], held: 0 };
    const [reopened, , concluded] = await inOneTrip(client, () => [
      recordCounts(tx, { zoneId, counts: events.counts, storedAt }),
      insertRawBlocks(tx, zoneId, page.rawBlocks),
      conclude(tx, stored),
      assertFence(tx, lease.name, lease.fence),
    ]);
    return { stored: { ...stored, reopened }, concluded };
  });
}

function mergePage<T>(database: Database, given: NewPage, conclude: Conclude<T>) {
  return inTransaction(database, async (transaction) => {
    const { tx, client } = transaction;
    const archived = await readArchived(transaction, given);
    const page = archived.size === 0 ? given : await setAsideArchived(given, archived);
    const { zoneId, lease } = page;
    const tombstones = await readCovering(transaction, page);
    const { merged, emptied, held, ...others } =
      tombstones.length === 0
        ? { merged: await mergeEvents(transaction, page, page.events), emptied: [], held: 0, ...page }
        : await mergeGuarded(transaction, page, tombstones);
    const quarantined = await quarantineEntries(tx, zoneId, others.quarantined);
    const stored = { ...merged, quarantined, held };
    const [, concluded] = await inOneTrip(client, () => [
      insertRawBlocks(tx, zoneId, others.rawBlocks),
      conclude(tx, stored),
      assertFence(tx, lease.name, lease.fence),
    ]);
    await enterEmptied(tx, emptied);
    return { stored, concluded };
  });
}

/**
 * Returns the archive days among the page's days. Today is never one. Other days stay what they are until the transaction
 * ends.
 */
async function readArchived({ tx, client }: Transaction, page: NewPage): Promise<ReadonlySet<string>> {
  const { firstAt, lastAt } = page.events;
  if (firstAt === null || lastAt === null || firstAt >= startOfDay(page.storedAt)) return new Set();
  return holdDays(tx, client, { zoneId: page.zoneId, firstAt, lastAt });
}

/** Returns whether an event in the page's time span is stored under another time. Such a page has to be staged. */
async function hasAliases(tx: Queryable, zoneId: number, { firstAt, lastAt }: NewEvents): Promise<boolean> {
  if (firstAt === null || lastAt === null) return false;
  const { rows } = await tx.execute<{ found: boolean }>(sql`
    select exists(select from event_aliases where zone_id = ${zoneId}
      and other_at between ${new Date(firstAt)} and ${new Date(lastAt)}) as found`);
  return rows[0]?.found ?? false;
}

/** Returns the tombstones that may cover the page. A page without new content needs none. */
async function readCovering({ tx, client }: Transaction, page: NewPage): Promise<TombstoneRow[]> {
  const { zoneId, events, quarantined, storedAt } = page;
  if (events.size === 0 && quarantined.length === 0) return [];
  const { firstAt, lastAt } = events;
  return holdTombstones(tx, client, {
    zoneId,
    sinceMs: firstAt ?? storedAt - OLDEST_ENTRY_MS,
    untilMs: lastAt ?? storedAt,
  });
}

interface GuardedPage extends Pick<NewPage, "quarantined" | "rawBlocks"> {
  readonly merged: StoredEvents;
  readonly emptied: readonly Emptied[];
  readonly held: number;
}

async function mergeGuarded(
  transaction: Transaction,
  page: NewPage,
  tombstones: readonly TombstoneRow[],
): Promise<GuardedPage> {
  const { erasures: guard } = page;
  if (guard === undefined) throw new Error("a page that an erasure may cover has nobody to keep it out");
  const judge = await guard.judge(tombstones);
  if (judge !== null) return mergeJudged(transaction, page, { tombstones, judge, guard });
  if (page.mustJudge === true) throw new Error("a page that was held back cannot be judged yet");
  return holdCovered(transaction, page, lastUntil(tombstones));
}

function lastUntil(tombstones: readonly TombstoneRow[]): number {
  return Math.max(...tombstones.map(({ untilAt }) => untilAt));
}

interface Judged {
  readonly tombstones: readonly TombstoneRow[];
  readonly judge: ErasureJudge;
  readonly guard: ErasureGuard;
}

async function mergeJudged(
  transaction: Transaction,
  page: NewPage,
  { tombstones, judge, guard }: Judged,
): Promise<GuardedPage> {
  const { tx } = transaction;
  const { zoneId, events } = page;
  const { match, orphans } = judge;
  if (events.size > 0) await stageEvents(transaction, events);
  if (events.size > 0 && orphans.length > 0) await blankStaged(tx, { zoneId, untilMs: lastUntil(orphans) });
  const merged = await mergeStaged(transaction, page, events);
  const { firstAt, lastAt } = events;
  const { erased, emptied } =
    firstAt === null || lastAt === null || events.size === 0
      ? { erased: [], emptied: [] }
      : await eraseCovered(
          tx,
          zoneId,
          { firstAt, lastAt },
          { match, open: await matchOpen(tombstones, guard), eraser: guard },
        );
  return {
    merged,
    emptied,
    held: 0,
    quarantined: await eraseFromQuarantine(page.quarantined, judge, guard),
    rawBlocks: await eraseFromBlocks(page.rawBlocks, erased, guard),
  };
}

/** Holds back data up to `untilMs`: events, blocks with at least one such record, and entries without a known time. */
async function holdCovered(transaction: Transaction, page: NewPage, untilMs: number): Promise<GuardedPage> {
  const { tx } = transaction;
  const { zoneId, events, rawBlocks } = page;
  const isHeld = ({ firstAt }: NewRawBlock) => firstAt <= untilMs;
  if (events.size > 0) await stageEvents(transaction, events);
  const { moved, added } = events.size > 0 ? await holdStaged(tx, { zoneId, untilMs }) : NONE_HELD;
  const merged = await mergeStaged(transaction, page, { ...events, size: events.size - moved });
  await insertHeldBlocks(tx, zoneId, rawBlocks.filter(isHeld));
  return {
    merged,
    emptied: [],
    held: added,
    quarantined: page.quarantined.map((entry) => ({ ...entry, isHeld: true })),
    rawBlocks: rawBlocks.filter((block) => !isHeld(block)),
  };
}

const NONE_HELD = { moved: 0, added: 0 };
