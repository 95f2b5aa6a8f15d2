/** Entries of the quarantine are stored again: when a person asks, and when the pseudonym key is back. */
import { z } from "zod";
import { readArchivedDays } from "#db/archive/archived-days.ts";
import type { Queryable } from "#db/client.ts";
import { readHashKey } from "#db/health/server-facts.ts";
import {
  readHeldCounts,
  readQuarantined,
  removeQuarantined,
  setReasons,
  type WholeEntry,
} from "#db/ingest/quarantine.ts";
import { inArchive, packNewRecords, WAITS_FOR_KEY } from "#db/ingest/raw-blocks.ts";
import { storePage } from "#db/ingest/store-page.ts";
import { releaseHeldEntries } from "#db/people/erase-quarantine.ts";
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { type EventRecord, HELD_BACK, readPage, renewReason } from "#ingest/rules/read-page.ts";
import { isObject, parseJson } from "#lib/json.ts";
import type { Log } from "#lib/log.ts";
import { firstListedDay, toDay } from "#model/horizon.ts";
import { daysOf, type WafEvent } from "#model/waf-event.ts";
import { type AnyJob, defineJob, LEASE_TAKEN } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import type { StoreEntriesDeps } from "./copy-search.ts";

const LEASE_TTL_MS = 15_000;
const ENTRIES_PER_TRANSACTION = 200;

type RetryDeps = Pick<StoreEntriesDeps, "database" | "partitions" | "clock" | "erasures">;

export interface RetriedEntries {
  readonly zoneId: number;
  /** Null: every entry of the zone that neither waits for the pseudonym key nor was held back with its answer. */
  readonly ids: readonly number[] | null;
  /** Runs in the transaction that stores entries and removes them from the quarantine. */
  readonly note: (tx: Queryable, ids: readonly number[]) => Promise<unknown>;
}

export interface Retried {
  readonly stored: number;
  /** Entries that still cannot be stored, with the reason of today. */
  readonly kept: readonly { readonly id: number; readonly reason: string }[];
}

/**
 * Reads quarantined entries again, with the reader and the rules of this version. Stores the events like those of a page,
 * and removes their entries in the same transaction, so that a killed retry may be run again. Returns null if another
 * retry of the zone is running.
 */
export async function retryQuarantined(
  deps: RetryDeps,
  { zoneId, ids, note }: RetriedEntries,
  signal: AbortSignal,
): Promise<Retried | null> {
  const { database } = deps;
  return holdLease(database, { name: `retry-quarantined.${zoneId}`, ttlMs: LEASE_TTL_MS }, async (lease) => {
    const until = AbortSignal.any([signal, lease.lost]);
    let [stored, after] = [0, 0];
    const kept: { id: number; reason: string }[] = [];
    while (true) {
      until.throwIfAborted();
      const rows = await readQuarantined(database.db, { zoneId, ids, after, limit: ENTRIES_PER_TRANSACTION });
      const due = rows.filter((row) => whyNotYet(row) === null);
      const failed = await storeAgain(deps, { zoneId, lease, note }, due);
      await setReasons(database.db, failed);
      kept.push(...failed.map(({ id, reason }) => ({ id, reason })));
      stored += due.length - failed.length;
      if (rows.length < ENTRIES_PER_TRANSACTION) return { stored, kept };
      after = rows.at(-1)?.id ?? after;
    }
  });
}

type Retrying = Pick<RetriedEntries, "zoneId" | "note"> & { readonly lease: OwnedLease };

/** Stores those of the entries that can be stored, and removes them. Returns the others, with the reason of today. */
async function storeAgain(
  deps: RetryDeps,
  zone: Retrying,
  rows: readonly WholeEntry[],
): Promise<Pick<WholeEntry, "id" | "raw" | "reason">[]> {
  const { db } = deps.database;
  const hashKey = await readHashKey(deps.database);
  const read = rows.map((row) => readAgain(row, hashKey));
  const events = read.flatMap(({ event }) => event ?? []);
  const archived = await findArchived(db, zone.zoneId, events);
  const failed = read.flatMap(({ id, raw, event, reason }) => {
    if (event === null) return { id, raw, reason };
    const day = toDay(event.occurredAt);
    return archived.has(day) ? { id, raw, reason: renewReason(reason, inArchive(day)) } : [];
  });
  const ready = read.filter((one) => !failed.some((other) => other.id === one.id));
  if (ready.length > 0) await storeReady(deps, zone, ready);
  return failed;
}

/** Stores the events and removes their entries. */
async function storeReady(
  { database, partitions, clock, erasures }: RetryDeps,
  { zoneId, lease, note }: Retrying,
  ready: readonly Reading[],
): Promise<void> {
  const storedAt = clock();
  const events = ready.flatMap(({ event }) => event ?? []);
  const ids = ready.map(({ id }) => id);
  // While the list shows the day, its record is better than a search's row.
  const isNeeded = ({ isRow, record }: Reading) =>
    !isRow || (record?.occurredAt ?? 0) < firstListedDay(storedAt);
  const records = ready.filter(isNeeded).flatMap(({ record }) => record ?? []);
  const rawBlocks = await packNewRecords(database.db, zoneId, records);
  const page = {
    zoneId,
    lease,
    events,
    expectNew: false,
    // Held again, an entry would be removed with the one that it came from.
    mustJudge: true,
    storedAt,
    rawBlocks,
    quarantined: [],
    erasures,
  };
  await partitions.withDays(daysOf(events), () =>
    storePage(database, page, async (tx) => {
      // The events of such a day went to the quarantine again, and would be removed with their entries.
      if ((await findArchived(tx, zoneId, events)).size > 0)
        throw new Error("a day was archived while its entries were read again");
      await removeQuarantined(tx, ids);
      await note(tx, ids);
    }),
  );
}

/** Returns why an entry must not be read again yet; null if it may be. */
export function whyNotYet({ isHeld, reason }: Pick<WholeEntry, "isHeld" | "reason">): string | null {
  if (isHeld) return "waits for the pseudonym key (docs/privacy.md). Try again when the key is there.";
  return reason === HELD_BACK
    ? "was held back with its answer. Longwatch stores it if the platform still shows it after an hour."
    : null;
}

interface Reading {
  readonly id: number;
  readonly raw: Buffer;
  /** Null if the entry cannot be stored, for the reason. */
  readonly event: WafEvent | null;
  readonly reason: string;
  readonly record: EventRecord | null;
  /** Whether the entry is a row of a search. */
  readonly isRow: boolean;
}

/** Reads an entry by its form: a record that was set aside for an archive day may be a row of a search. */
function readAgain({ id, raw, day, receivedAt, route, ...row }: WholeEntry, hashKey: string): Reading {
  const entry = parseJson(raw.toString());
  // An event that arrived for an archive day or was held. No entry of the platform has this member.
  const isAside = row.reason === WAITS_FOR_KEY || row.reason === inArchive(day ?? "");
  if (isAside && isObject(entry) && "occurredAt" in entry)
    return { id, raw, event: entry as unknown as WafEvent, reason: "", record: null, isRow: false };
  const isRow = route === "search" || (isObject(entry) && isObject(entry["fields"]));
  const from = isRow ? ({ route: "search", day: null } as const) : ({ route: "list", day } as const);
  const { events, records, quarantined } = readPage([raw], { ...from, receivedAt, hashKey }, [entry]);
  const [event = null, record = null] = [events[0], records[0]];
  return { id, raw, event, reason: renewReason(row.reason, quarantined[0]?.reason ?? ""), record, isRow };
}

async function findArchived(
  db: Queryable,
  zoneId: number,
  events: readonly WafEvent[],
): Promise<Set<string>> {
  const archived = new Set<string>();
  for (const day of daysOf(events)) {
    const from = Date.parse(day);
    if ((await readArchivedDays(db, zoneId, { from, to: from + 1 })).length > 0) archived.add(day);
  }
  return archived;
}

const JUDGE_LEASE = { name: "judge-held", ttlMs: 15_000 };

export interface JudgeHeldDeps
  extends Pick<JobContext, "database" | "partitions" | "clock" | "erasures" | "afterPage"> {
  readonly log: Pick<Log, "info">;
}

/**
 * Judges the entries that were held while the pseudonym key was missing, and stores their events. Does nothing while the key
 * is still missing. After a kill the next job continues. If two jobs run at once, only one works.
 */
export function createJudgeHeldJob(deps: JudgeHeldDeps): AnyJob {
  return defineJob({
    name: "judge-held",
    queue: "ingest",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 600_000,
    run: (_, signal) => judgeHeld(deps, signal),
  });
}

export async function judgeHeld(deps: JudgeHeldDeps, signal: AbortSignal) {
  const { database, erasures, log, afterPage } = deps;
  const held = await readHeldCounts(database.db);
  if (held.length === 0) return "no event is held";
  if ((await erasures.judge([])) === null) return "the pseudonym key is missing";
  const done = await holdLease(database, JUDGE_LEASE, async (lease) => {
    const until = AbortSignal.any([signal, lease.lost]);
    for (const { zoneId, entries } of held) {
      while (!until.aborted) {
        const rows = await readQuarantined(database.db, { zoneId, onlyHeld: true });
        if (rows.length === 0) break;
        // The other entries are in the quarantine for another reason, and stay there.
        const { waiting = [], others = [] } = Object.groupBy(rows, ({ reason }) =>
          reason === WAITS_FOR_KEY ? "waiting" : "others",
        );
        const failed = await storeAgain(deps, { zoneId, lease, note: async () => undefined }, waiting);
        await releaseHeldEntries(database, { zoneId, lease, guard: erasures }, [...others, ...failed]);
        afterPage();
      }
      if (until.aborted) return;
      log.info({ zoneId, entries }, "held entries judged");
    }
  });
  return done === null ? LEASE_TAKEN : undefined;
}
