import { EventRow } from "#adapters/edge/contract/event-logs.ts";
import { LEASE_TAKEN } from "#adapters/queue/define-job.ts";
import { continueSearch } from "#db/coverage/horizons.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";
import { startOfHour } from "#model/horizon.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { SHORT_OVERLAP_MS } from "#stages/coverage/plan-search.ts";
import { findNews, type KnownRows, rememberRows } from "#stages/ingest/known-rows.ts";
import { readBy, readPage } from "#stages/ingest/read-page.ts";
import { toSearchEvent } from "#stages/ingest/to-search-event.ts";
import { type CopySearchDeps, readRows } from "./copy-search.ts";
import { readHashKey } from "./hash-key.ts";
import { storeEntries } from "./store-entries.ts";

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

export interface LookDeps extends CopySearchDeps {
  /** Called with the new events of a look. */
  readonly onNews: (events: readonly WafEvent[]) => Promise<void>;
}

interface Look {
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
export async function lookAtNewest(
  deps: LookDeps,
  { zoneId, lease, minutes }: Look,
  signal: AbortSignal,
): Promise<{ readonly why: string | undefined } | null> {
  const { database, clock } = deps;
  const now = clock();
  const known = minutes.get(zoneId);
  if (known === undefined || !isDue(known, now)) return null;
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
  const read = readPage(newRaws, { ...source, ...readBy(EventRow, toSearchEvent) }, newRows);
  let isContinued = false;
  const held = await holdLease(database, lease, async (taken) => {
    const conclude = async (tx: typeof database.db) => {
      isContinued = await continueSearch(tx, zoneId, cursor);
    };
    const expectNew = !hasKnownId;
    await storeEntries(deps, { ...read, zoneId, lease: taken, expectNew, bytes, conclude });
    return true;
  });
  if (held === null) return { why: LEASE_TAKEN };
  remember(isContinued && rememberRows(before, newRows, newRaws));
  await deps.onNews(read.events);
  return { why: undefined };
}

function isDue({ polledAt, through, hour, freshMs }: NewestMinutes, now: number): boolean {
  const isWholeDue = now - polledAt >= WHOLE_POLL_MS - SLACK_MS;
  return !isWholeDue && hour === startOfHour(now) && now - through >= freshMs;
}
