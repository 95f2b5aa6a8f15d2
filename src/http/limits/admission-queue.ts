import { Refusal } from "../errors/refusal.ts";

export interface AdmissionQueueOptions {
  /** Expensive searches that run at once while ingest is not busy. */
  readonly places: number;
  /** Expensive searches of one key, running and waiting. */
  readonly perKey: number;
  /** Waiting searches of all keys together. */
  readonly waiting: number;
  readonly maxWaitMs: number;
}

interface Admission {
  /** Whether ingest is busy, as the latest caller of `enter` reported. */
  readonly isBusy: boolean;
  /** Gives the place back; a second call does nothing. */
  readonly leave: () => void;
}

/** Expensive searches of this process that wait for their turn. */
export interface AdmissionQueue {
  /**
   * Resolves when the search may run. `isBusy`: ingest is busy now.
   * @throws {Refusal} 429 if the key has too many searches already, 503 if too many wait or the wait was too long
   * @throws the signal's reason if it aborts while the search waits
   */
  enter(keyId: string, isBusy: boolean, signal: AbortSignal): Promise<Admission>;
  counts(): { readonly working: number; readonly waiting: number };
}

interface Waiter {
  readonly keyId: string;
  readonly pass: () => void;
}

/**
 * Creates the queue. While ingest is busy, one expensive search runs at a time; otherwise as many as there are places.
 * One key never takes all places. The keys take turns (round-robin), so a key with many searches delays another key's
 * search by one search only. Cheap searches do not enter the queue.
 */
export function createAdmissionQueue({
  places,
  perKey,
  waiting,
  maxWaitMs,
}: AdmissionQueueOptions): AdmissionQueue {
  /** In the order of arrival. */
  const queue: Waiter[] = [];
  const working = new Map<string, number>();
  /** Sequence number of each key's last admission; used for round-robin between keys. */
  const turns = new Map<string, number>();
  let turn = 0;
  let isIngestBusy = false;

  const sum = (counts: Iterable<number>) => [...counts].reduce((total, count) => total + count, 0);
  const ownPlaces = Math.max(1, places - 1);

  function admitNext(): void {
    const free = (isIngestBusy ? 1 : places) - sum(working.values());
    if (free <= 0) return;
    const lastTurn = ({ keyId }: Waiter) => turns.get(keyId) ?? 0;
    const [next] = queue
      .filter(({ keyId }) => (working.get(keyId) ?? 0) < ownPlaces)
      .sort((one, other) => lastTurn(one) - lastTurn(other));
    if (next === undefined) return;
    queue.splice(queue.indexOf(next), 1);
    working.set(next.keyId, (working.get(next.keyId) ?? 0) + 1);
    turns.set(next.keyId, ++turn);
    next.pass();
    admitNext();
  }

  function leave(keyId: string): void {
    const left = (working.get(keyId) ?? 0) - 1;
    if (left > 0) working.set(keyId, left);
    else working.delete(keyId);
    admitNext();
    forget(keyId);
  }

  function forget(keyId: string): void {
    if (countOwn(keyId) === 0) turns.delete(keyId);
  }

  const countOwn = (keyId: string) =>
    (working.get(keyId) ?? 0) + queue.filter((waiter) => waiter.keyId === keyId).length;

  /** Resolves when the search has a place. */
  function waitForTurn(keyId: string, signal: AbortSignal): Promise<void> {
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
      const timer = setTimeout(() => giveUp(tooLate(maxWaitMs)), maxWaitMs);
      signal.addEventListener("abort", onAbort, { once: true });
      const waiter: Waiter = { keyId, pass: () => [stopWaiting(), resolve()] };
      queue.push(waiter);
      admitNext();
    });
  }

  return {
    async enter(keyId, isBusy, signal) {
      signal.throwIfAborted();
      isIngestBusy = isBusy;
      if (countOwn(keyId) >= perKey) throw tooMany(perKey);
      if (queue.length >= waiting) throw tooBusy(queue.length);
      // A new key comes after the keys that have waited since the last turn, and before the key that had that turn.
      if (!turns.has(keyId)) turns.set(keyId, turn - 0.5);
      await waitForTurn(keyId, signal);
      let hasPlace = true;
      const leaveOnce = () => {
        if (hasPlace) leave(keyId);
        hasPlace = false;
      };
      return { isBusy: isIngestBusy, leave: leaveOnce };
    },
    counts: () => ({ working: sum(working.values()), waiting: queue.length }),
  };
}

function tooMany(perKey: number): Refusal {
  return new Refusal(429, {
    slug: "too-many-at-once",
    detail: `This key already has ${perKey} expensive searches in progress. Wait until one of them ends.`,
    headers: { "retry-after": "1" },
  });
}

function tooBusy(waiting: number): Refusal {
  return new Refusal(503, {
    slug: "busy",
    detail: `${waiting} expensive searches are already waiting for the database. Try again in a moment, or choose a shorter time range.`,
    headers: { "retry-after": "5" },
  });
}

function tooLate(maxWaitMs: number): Refusal {
  return new Refusal(503, {
    slug: "busy",
    detail: `The search waited ${maxWaitMs / 1_000} seconds for other searches to end. Try again in a moment, or choose a shorter time range.`,
    headers: { "retry-after": "5" },
  });
}
