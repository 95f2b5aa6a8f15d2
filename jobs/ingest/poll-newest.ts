/** Reads the newest minutes again, and learns what their events lacked. */

import { readHashKey } from "#db/health/server-facts.ts";
import { clearUnresolved, readUnresolved } from "#db/ingest/remove-events.ts";
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { continueSearch } from "#db/proof/horizons.ts";
import { findNews, type KnownRows, rememberRows } from "#ingest/rules/plan-pass.ts";
import { readPage } from "#ingest/rules/read-page.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { planResolution } from "#proof/rules/plan-comparison.ts";
import { SHORT_OVERLAP_MS } from "#proof/rules/plan-search.ts";
import { LEASE_TAKEN } from "#store/queue/define-job.ts";
import { type CopySearchDeps, copySearch, readRows, storeEntries } from "./copy-search.ts";

/** A zone gets a whole poll in about this time, whatever its schedule. */
export const WHOLE_POLL_MS = 30_000;
/** Ticks are not exactly as far apart as they should be. */
const SLACK_MS = 3_000;

/** The newest minutes of a zone, as a process remembers them after a whole poll. */
export interface NewestMinutes {
  /** When the whole poll began, epoch ms. */
  readonly polledAt: number;
  /** The hour that runs, and how far it is searched; epoch ms. */
  readonly hour: number;
  readonly through: number;
  /** The newest search goes back to here, so that it shows events that are known; null if there are too few. */
  readonly knownSince: number | null;
  /** Searches are repeated after this. */
  readonly freshMs: number;
  readonly rows: KnownRows;
}

interface ShortPollDeps extends CopySearchDeps {
  /** Called with the new events of a short poll. */
  readonly onNews: (events: readonly WafEvent[]) => Promise<void>;
}

interface ShortPoll {
  readonly zoneId: number;
  readonly lease: { readonly name: string; readonly ttlMs: number };
  readonly minutes: Map<number, NewestMinutes>;
}

/**
 * Searches the newest minutes of a zone between two whole polls, and stores only what this process has not stored byte for
 * byte before. Without news it costs Postgres one statement and no lease: an answer that is stored already cannot
 * contradict another process. Returns null, and has changed nothing, if a whole poll is due or the answer needs one. Late
 * events, other hours and doubts are left to whole polls.
 */
export async function pollNewest(
  deps: ShortPollDeps,
  { zoneId, lease, minutes }: ShortPoll,
  signal: AbortSignal,
): Promise<{ readonly why: string | undefined } | null> {
  const { database, clock } = deps;
  const now = clock();
  const known = minutes.get(zoneId);
  if (known === undefined || !isShortPollDue(known, now)) return null;
  const { hour, through, knownSince, rows: before } = known;
  const from = Math.min(through - SHORT_OVERLAP_MS, knownSince ?? through);
  const answer = await readRows(deps, { zoneId, from, to: now }, signal);
  if ("parts" in answer || answer.contradiction !== null) return null;
  const { rows, raws, bytes } = answer;
  const { places, hasKnownId } = findNews(before, rows, raws);
  if (knownSince !== null && places.length === raws.length && !hasKnownId) return null;
  const cursor = { startsAt: hour, from: through, searchedThrough: now };
  const remember = (isContinued: boolean) => {
    if (isContinued) minutes.set(zoneId, { ...known, through: now });
    else minutes.delete(zoneId);
  };
  if (places.length === 0) {
    remember(await continueSearch(database.db, zoneId, cursor));
    return { why: "no event is new" };
  }
  const [newRows, newRaws] = [
    places.map((place) => rows[place]),
    places.map((place) => raws[place] as Buffer),
  ];
  const hashKey = await readHashKey(database);
  const source = { route: "search", day: null, receivedAt: now, hashKey } as const;
  const read = readPage(newRaws, source, newRows);
  let isContinued = false;
  const isStored = await holdLease(database, lease, async (taken) => {
    const conclude = async (tx: typeof database.db) => {
      isContinued = await continueSearch(tx, zoneId, cursor);
    };
    const expectNew = !hasKnownId;
    await storeEntries(deps, { ...read, zoneId, lease: taken, expectNew, bytes, conclude });
    return true;
  });
  if (isStored === null) return { why: LEASE_TAKEN };
  remember(isContinued && rememberRows(before, newRows, newRaws));
  await deps.onNews(read.events);
  return { why: undefined };
}

function isShortPollDue({ polledAt, through, hour, freshMs }: NewestMinutes, now: number): boolean {
  const isWholeDue = now - polledAt >= WHOLE_POLL_MS - SLACK_MS;
  return !isWholeDue && hour === startOfHour(now) && now - through >= freshMs;
}

/** The search usually shows an event within seconds of the list, so every poll searches for it during this time. */
const EAGER_MS = 5 * 60_000;
/** After this time the platform's search may never show the event. */
const PATIENT_MS = 15 * 60_000;

export interface ResolveEventsDeps extends CopySearchDeps {
  /**
   * When an hour (`zone:epoch ms`) was last searched for its unresolved events or for its rest; kept by this process
   * between the runs.
   */
  readonly searchedAt: Map<string, number>;
}

interface Poll {
  readonly zoneId: number;
  readonly lease: Pick<OwnedLease, "name" | "fence">;
  /** The hours that the platform still serves. */
  readonly hours: readonly CoveredHour[];
}

/**
 * Searches exactly the events that the list has stored and the search has not shown, so that they get every dimension
 * soon. May run twice: a search fills missing values and changes nothing else.
 */
export async function resolveEvents(
  deps: ResolveEventsDeps,
  { zoneId, lease, hours }: Poll,
  signal: AbortSignal,
): Promise<void> {
  const { database, clock, searchedAt } = deps;
  const now = clock();
  for (const hour of hours) {
    if (signal.aborted) return;
    const { startsAt, unresolvedSince, searchedThrough } = hour;
    const key = `${zoneId}:${startsAt}:unresolved`;
    if (unresolvedSince === null || searchedThrough === null) {
      searchedAt.delete(key);
      continue;
    }
    if (!isSearchDue(now, hour, searchedAt.get(key))) continue;
    searchedAt.set(key, now);
    const seenAt = now;
    const asked = await readUnresolved(database.db, zoneId, { startsAt, beforeMs: searchedThrough });
    for (const { from, to } of planResolution(asked)) {
      if (from < horizonAt(now)) continue;
      await copySearch(deps, { zoneId, lease, from, to, expectNew: false }, signal);
    }
    const left = await readUnresolved(database.db, zoneId, { startsAt, beforeMs: now });
    if (left.length === 0) await clearUnresolved(database.db, zoneId, { startsAt, seenAt });
  }
}

function isSearchDue(now: number, { unresolvedSince }: CoveredHour, last: number | undefined): boolean {
  if (last === undefined || (unresolvedSince ?? 0) > last) return true;
  return now - (unresolvedSince ?? 0) < EAGER_MS || now - last >= PATIENT_MS;
}
