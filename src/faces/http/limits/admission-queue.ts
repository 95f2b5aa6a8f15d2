/** The queue of expensive searches that wait for a turn. */

import type { Searching, SearchWork } from "#archive/search/searching.ts";
import type { ArchiveReader } from "#db/archive/archive-reader.ts";
import type { Database } from "#db/client.ts";
import { pause } from "#lib/waiting.ts";
import { Refusal } from "#operations/refusal.ts";

interface AdmissionQueueOptions {
  /** Requests of each kind that run at once, at least 2. */
  readonly places: Readonly<Record<SearchWork["kind"], number>>;
  /** Requests of one key and kind, running and waiting. Enough for several tabs of one person. */
  readonly perKey: Readonly<Record<SearchWork["kind"], number>>;
  readonly maxWaitMs: number;
  /** CPU time that one key may use within a minute. */
  readonly cpuMsPerMinute: number;
}

/** A place in the queue: its holder runs. */
export interface Place {
  readonly kind: SearchWork["kind"];
  /**
   * Registers a statement. The place stays taken until the returned function is called with the statement's CPU time,
   * even if the holder has left, because an interrupted statement continues for a moment.
   */
  readonly begin: () => (cpuMs: number) => void;
  /** Returns the place; a second call does nothing. */
  readonly leave: () => void;
}

/** Admits the requests of this process that read many events, one after another. */
export interface AdmissionQueue {
  /**
   * Resolves when the request may run.
   * @throws {Refusal} 429 if the key has too many requests or has used its time, 503 if the wait was too long
   * @throws the signal's reason if it aborts while the request waits
   */
  enter(keyId: string, work: SearchWork): Promise<Place>;
  counts(): { readonly working: number; readonly waiting: number };
}

interface Waiter {
  readonly keyId: string;
  readonly pass: () => void;
}

/**
 * Creates the queue. Each kind has its own places. The last free place of a kind is never given to a key that already
 * has one, so a key always finds a place, whatever another key sends. The keys take turns (round-robin), so a key with
 * many requests delays another key's request by one request. A key that has used its CPU time waits until part of that
 * time is available again.
 */
export function createAdmissionQueue(options: AdmissionQueueOptions): AdmissionQueue {
  const allowance = createAllowance(options.cpuMsPerMinute);
  const lanes = { quick: createLane(options, "quick"), long: createLane(options, "long") };

  function occupy(keyId: string, { kind, postgresMs = 0 }: SearchWork): Place {
    let unfinished = 0;
    const begin = () => {
      unfinished += 1;
      let isOver = false;
      return (cpuMs: number) => {
        if (isOver) return;
        isOver = true;
        unfinished -= 1;
        allowance.spend(keyId, cpuMs);
        if (unfinished === 0) lanes[kind].leave(keyId);
      };
    };
    const leave = begin();
    return { kind, begin, leave: () => leave(postgresMs) };
  }

  return {
    async enter(keyId, work) {
      const { kind, signal, isPatient = false } = work;
      signal.throwIfAborted();
      for (let waitMs = allowance.waitMs(keyId); waitMs > 0; waitMs = allowance.waitMs(keyId)) {
        if (!isPatient) throw spent(options.cpuMsPerMinute, waitMs);
        await pause(waitMs, signal);
      }
      await lanes[kind].waitForTurn(keyId, work);
      return occupy(keyId, work);
    },
    counts: () => ({
      working: lanes.quick.working() + lanes.long.working(),
      waiting: lanes.quick.waiting() + lanes.long.waiting(),
    }),
  };
}

function createLane({ places, perKey, maxWaitMs }: AdmissionQueueOptions, kind: SearchWork["kind"]) {
  /** The waiting requests, in the order of arrival. */
  const queue: Waiter[] = [];
  const working = new Map<string, number>();
  /** Sequence number of each key's last admission; used for round-robin between keys. */
  const turns = new Map<string, number>();
  let turn = 0;

  const countWorking = () => [...working.values()].reduce((total, count) => total + count, 0);
  const countOwn = (keyId: string) =>
    (working.get(keyId) ?? 0) + queue.filter((waiter) => waiter.keyId === keyId).length;

  function admitNext(): void {
    const free = Math.max(2, places[kind]) - countWorking();
    if (free <= 0) return;
    const lastTurn = ({ keyId }: Waiter) => turns.get(keyId) ?? 0;
    const [next] = queue
      .filter(({ keyId }) => free > 1 || !working.has(keyId))
      .sort((one, other) => lastTurn(one) - lastTurn(other));
    if (next === undefined) return;
    queue.splice(queue.indexOf(next), 1);
    working.set(next.keyId, (working.get(next.keyId) ?? 0) + 1);
    turns.set(next.keyId, ++turn);
    next.pass();
    admitNext();
  }

  function forget(keyId: string): void {
    if (countOwn(keyId) === 0) turns.delete(keyId);
  }

  return {
    /** Resolves when the request has a place. */
    waitForTurn(keyId: string, { signal, isPatient = false }: SearchWork): Promise<void> {
      const most = perKey[kind];
      if (!isPatient && countOwn(keyId) >= most) throw tooMany(most);
      // A new key comes after the keys that have waited since the last turn, and before the key that had that turn.
      if (!turns.has(keyId)) turns.set(keyId, turn - 0.5);
      return new Promise((resolve, reject) => {
        const stopWaiting = () => {
          clearTimeout(timer);
          signal.removeEventListener("abort", onAbort);
        };
        const giveUp = (reason: unknown) => {
          stopWaiting();
          const index = queue.indexOf(waiter);
          if (index >= 0) queue.splice(index, 1);
          forget(keyId);
          reject(reason);
        };
        const onAbort = () => giveUp(signal.reason);
        const timer = isPatient ? undefined : setTimeout(() => giveUp(tooLate(maxWaitMs)), maxWaitMs);
        signal.addEventListener("abort", onAbort, { once: true });
        const waiter: Waiter = { keyId, pass: () => [stopWaiting(), resolve()] };
        queue.push(waiter);
        admitNext();
      });
    },
    leave(keyId: string): void {
      const left = (working.get(keyId) ?? 0) - 1;
      if (left > 0) working.set(keyId, left);
      else working.delete(keyId);
      admitNext();
      forget(keyId);
    },
    working: countWorking,
    waiting: () => queue.length,
  };
}

const MINUTE_MS = 60_000;

/** Counts each key's CPU time, refilled evenly. A minute's time may be used at once; the last request may exceed it. */
function createAllowance(cpuMsPerMinute: number) {
  /** The time at which each key's allowance is full again. */
  const fullAt = new Map<string, number>();
  return {
    waitMs: (keyId: string) => Math.ceil((fullAt.get(keyId) ?? 0) - performance.now() - MINUTE_MS),
    spend(keyId: string, cpuMs: number): void {
      const now = performance.now();
      for (const [key, at] of fullAt) if (at <= now) fullAt.delete(key);
      fullAt.set(keyId, (fullAt.get(keyId) ?? now) + (cpuMs * MINUTE_MS) / cpuMsPerMinute);
    },
  };
}

const seconds = (ms: number) => Math.ceil(ms / 1_000);

function tooMany(perKey: number): Refusal {
  return new Refusal(429, {
    slug: "too-many-at-once",
    detail: `This key already has ${perKey} searches, lists or exports in progress. Wait until one of them ends.`,
    headers: { "retry-after": "1" },
  });
}

function spent(cpuMsPerMinute: number, waitMs: number): Refusal {
  return new Refusal(429, {
    slug: "cpu-time-used",
    detail: `This key has used its ${seconds(cpuMsPerMinute)} seconds of CPU time a minute for searches, lists and exports. Try again in ${seconds(waitMs)} seconds, or choose a shorter time range or fewer filters.`,
    headers: { "retry-after": String(seconds(waitMs)) },
  });
}

function tooLate(maxWaitMs: number): Refusal {
  return new Refusal(503, {
    slug: "busy",
    detail: `The request waited ${seconds(maxWaitMs)} seconds for others to end. Try again in a moment, or choose a shorter time range.`,
    headers: { "retry-after": "5" },
  });
}

interface PlaceParts {
  readonly queries: Database;
  readonly files: ArchiveReader;
  readonly queue: AdmissionQueue;
  readonly isIngestBusy: () => Promise<boolean>;
}

/**
 * Returns a function that waits for a place without a connection, and gives the place back when the work has ended. While
 * ingest is busy, long work uses one process of the database only, because ingest needs the processors more.
 */
export function createRunInPlace({
  queries,
  files,
  queue,
  isIngestBusy,
}: PlaceParts): Searching["runInPlace"] {
  return async (request, work, run) => {
    const place = await queue.enter(request.caller?.keyId ?? "", work);
    try {
      const isBusy = work.kind === "long" && (await isIngestBusy());
      const reading = isBusy ? { ...queries, parallelWorkers: 0 } : queries;
      return await run({ queries: reading, files: files.inPlace(place) }, work.signal);
    } finally {
      place.leave();
    }
  };
}
