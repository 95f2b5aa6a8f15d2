import { readSqlState } from "#lib/errors.ts";
import { startOfDay } from "#model/horizon.ts";
import { type EventKey, spanOf } from "#model/waf-event.ts";
import { holdDays } from "../archive/day-source.ts";
import type { Database, Queryable } from "../client.ts";
import { holdTombstones, type TombstoneRow } from "../people/tombstones.ts";
import { assertFence } from "../postgres/leases.ts";
import { inOneTrip, inTransaction, type Transaction } from "../postgres/transaction.ts";
import {
  blankStaged,
  type Emptied,
  type ErasureGuard,
  type ErasureJudge,
  enterEmptied,
  eraseCovered,
  eraseFromBlocks,
  eraseFromQuarantine,
  matchOpen,
  takeStaged,
} from "./guard-page.ts";
import { type NewQuarantinedEntry, quarantineEntries } from "./quarantine.ts";
import {
  insertRawBlocks,
  type NewRawBlock,
  setAsideArchived,
  setAsideEvent,
  setAsideRecords,
  WAITS_FOR_KEY,
} from "./raw-blocks.ts";
import {
  copyEvents,
  type EventsToStore,
  hasAliases,
  mergeStaged,
  type StoredEvents,
  stageEvents,
} from "./store-events.ts";

const UNIQUE_VIOLATION = "23505";
/** Upper limit for the age of a page's events: ingest takes none that is older than ten days. */
const OLDEST_ENTRY_MS = 11 * 86_400_000;

export interface NewPage extends EventsToStore {
  readonly lease: { readonly name: string; readonly fence: number };
  readonly quarantined: readonly NewQuarantinedEntry[];
  readonly rawBlocks: readonly NewRawBlock[];
  /** Without a guard, a page that a tombstone may cover is refused. */
  readonly erasures?: ErasureGuard | undefined;
  /** True for entries of the quarantine: without the pseudonym key the call fails and holds nothing. */
  readonly mustJudge?: boolean;
}

export interface StoredPage extends StoredEvents {
  readonly quarantined: number;
}

/** Thrown if entries that only the missing pseudonym key can judge must be judged now. */
export class KeyMissingError extends Error {
  override readonly name = "KeyMissingError";
}

type Conclude<T> = (tx: Queryable, stored: StoredPage) => Promise<T>;

/**
 * Stores one page of the platform in one transaction: events, stale minutes, hour counts, records, quarantined
 * entries, and whatever `conclude` adds (ledger, cursor). Stores nothing if another process has taken the lease over.
 * With `expectNew` the events are copied straight into the table if nothing may cover them, and again staged and merged if
 * one of them turns out to be stored. Pass it if the page before had only new events. Erased data is never stored again.
 * While the pseudonym key is missing, events and records that an erasure may cover are held in the quarantine and the rest
 * is stored. Events and records of archive days are quarantined.
 * @throws {FenceLostError}
 */
export async function storePage<T>(
  database: Database,
  page: NewPage,
  conclude: Conclude<T>,
): Promise<{ stored: StoredPage; concluded: T }> {
  try {
    return await storeOnce(database, page, conclude);
  } catch (thrown) {
    if (!page.expectNew || readSqlState(thrown) !== UNIQUE_VIOLATION) throw thrown;
    return storeOnce(database, { ...page, expectNew: false }, conclude);
  }
}

function storeOnce<T>(database: Database, given: NewPage, conclude: Conclude<T>) {
  return inTransaction(database, async (transaction) => {
    const { tx, client } = transaction;
    const { zoneId, lease } = given;
    const page = await setAsideArchived(given, await readArchived(transaction, given));
    const cover = await planCover(transaction, page);
    const { held, ...merged } = await storeEvents(transaction, page, cover);
    const { emptied, ...others } = await guardOthers(tx, page, cover);
    const quarantined = await quarantineEntries(tx, zoneId, [...others.quarantined, ...held]);
    const stored = { ...merged, quarantined };
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
  const span = spanOf(page.events);
  if (span === null || span.firstAt >= startOfDay(page.storedAt)) return new Set();
  return holdDays(tx, client, { zoneId: page.zoneId, ...span });
}

/** The protection of a page against storing erased data again. */
type Cover =
  | { readonly kind: "none" }
  | {
      readonly kind: "judged";
      readonly tombstones: readonly TombstoneRow[];
      readonly judge: ErasureJudge;
      readonly guard: ErasureGuard;
    }
  /** Data up to `untilMs` cannot be judged yet. */
  | { readonly kind: "held"; readonly untilMs: number };

async function planCover({ tx, client }: Transaction, page: NewPage): Promise<Cover> {
  const { zoneId, events, quarantined, storedAt, erasures: guard } = page;
  // A page without new content needs no judgement.
  if (events.length === 0 && quarantined.length === 0) return { kind: "none" };
  const { firstAt: sinceMs, lastAt: untilMs } = spanOf(events) ?? {
    firstAt: storedAt - OLDEST_ENTRY_MS,
    lastAt: storedAt,
  };
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

function lastUntil(tombstones: readonly TombstoneRow[]): number {
  return Math.max(...tombstones.map(({ untilAt }) => untilAt));
}

/**
 * Stores the page's events. Returns those that cannot be judged as entries for the quarantine. What no key can judge any
 * more is stored empty.
 */
async function storeEvents(transaction: Transaction, page: NewPage, cover: Cover) {
  const { tx } = transaction;
  const { zoneId, events, expectNew } = page;
  if (events.length === 0) return { inserted: 0, filled: 0, reopened: [], held: [] };
  if (expectNew && cover.kind === "none" && !(await hasAliases(tx, page)))
    return { ...(await copyEvents(transaction, page)), held: [] };
  await stageEvents(transaction, page);
  if (cover.kind === "judged" && cover.judge.orphans.length > 0)
    await blankStaged(tx, { zoneId, untilMs: lastUntil(cover.judge.orphans) });
  const taken = cover.kind === "held" ? await takeStaged(tx, { zoneId, untilMs: cover.untilMs }) : [];
  const keys = new Set(taken.map(showKey));
  const held = events.flatMap((event) =>
    keys.has(showKey(event)) ? { ...setAsideEvent(event, () => WAITS_FOR_KEY), isHeld: true } : [],
  );
  return { ...(await mergeStaged(transaction, page, events.length - taken.length)), held };
}

const showKey = ({ occurredAt, logId }: EventKey) => `${occurredAt} ${logId}`;

interface Guarded extends Pick<NewPage, "quarantined" | "rawBlocks"> {
  readonly emptied: readonly Emptied[];
}

/**
 * Empties what is covered: stored events, the page's records and its quarantined entries. Without a judge, holds back
 * blocks with at least one record that may be covered, and entries, whose time is not known.
 */
async function guardOthers(tx: Queryable, page: NewPage, cover: Cover): Promise<Guarded> {
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
