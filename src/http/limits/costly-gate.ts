import { Refusal } from "../errors/refusal.ts";

export interface CostlyGateOptions {
  /** Worked on at once while nothing else needs the database much. */
  readonly places: number;
  /** Of one key, working and waiting. */
  readonly perKey: number;
  /** Of all keys together. */
  readonly waiting: number;
  readonly maxWaitMs: number;
}

interface CostlyPlace {
  /** Whether ingest is at work, by the newest word of anybody who came. */
  readonly isBusy: boolean;
  /** Gives the place back; again does nothing. */
  readonly leave: () => void;
}

/** Lets costly questions in one by one, per process. */
export interface CostlyGate {
  /**
   * Resolves when it is this one's turn. `isBusy` says whether ingest is at work now.
   * @throws {Refusal} 429 where the key has too many already, 503 where too many wait or the wait was too long
   * @throws the signal's reason when it aborts in line
   */
  enter(keyId: string, isBusy: boolean, signal: AbortSignal): Promise<CostlyPlace>;
  counts(): { readonly working: number; readonly waiting: number };
}

interface Waiter {
  readonly keyId: string;
  readonly pass: () => void;
}

/**
 * While ingest is at work one costly question runs at a time, and otherwise as many as there are places, of which one is
 * kept for other keys. Whose turn is next goes round among the keys, so that a key with many questions delays another
 * one's by one of them. Everybody else is served beside this, at once.
 */
export function createCostlyGate({ places, perKey, waiting, maxWaitMs }: CostlyGateOptions): CostlyGate {
  /** In the order they came. */
  const line: Waiter[] = [];
  const working = new Map<string, number>();
  /** When keys that have somebody here had their last turn: the first, the second one of all. */
  const turns = new Map<string, number>();
  let turn = 0;
  let isIngestBusy = false;

  const sum = (counts: Iterable<number>) => [...counts].reduce((total, count) => total + count, 0);
  const ownPlaces = Math.max(1, places - 1);

  function letIn(): void {
    const free = (isIngestBusy ? 1 : places) - sum(working.values());
    if (free <= 0) return;
    const lastTurn = ({ keyId }: Waiter) => turns.get(keyId) ?? 0;
    const [next] = line
      .filter(({ keyId }) => (working.get(keyId) ?? 0) < ownPlaces)
      .sort((one, other) => lastTurn(one) - lastTurn(other));
    if (next === undefined) return;
    line.splice(line.indexOf(next), 1);
    working.set(next.keyId, (working.get(next.keyId) ?? 0) + 1);
    turns.set(next.keyId, ++turn);
    next.pass();
    letIn();
  }

  function leave(keyId: string): void {
    const left = (working.get(keyId) ?? 0) - 1;
    if (left > 0) working.set(keyId, left);
    else working.delete(keyId);
    letIn();
    forget(keyId);
  }

  function forget(keyId: string): void {
    if (countOwn(keyId) === 0) turns.delete(keyId);
  }

  const countOwn = (keyId: string) =>
    (working.get(keyId) ?? 0) + line.filter((waiter) => waiter.keyId === keyId).length;

  /** Resolves when the place is this one's. */
  function stand(keyId: string, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leaveLine = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
      };
      const giveUp = (reason: unknown) => {
        leaveLine();
        const index = line.indexOf(waiter);
        if (index >= 0) line.splice(index, 1);
        forget(keyId);
        reject(reason);
      };
      const onAbort = () => giveUp(signal.reason);
      const timer = setTimeout(() => giveUp(tooLate(maxWaitMs)), maxWaitMs);
      signal.addEventListener("abort", onAbort, { once: true });
      const waiter: Waiter = { keyId, pass: () => [leaveLine(), resolve()] };
      line.push(waiter);
      letIn();
    });
  }

  return {
    async enter(keyId, isBusy, signal) {
      signal.throwIfAborted();
      isIngestBusy = isBusy;
      if (countOwn(keyId) >= perKey) throw tooMany(perKey);
      if (line.length >= waiting) throw tooBusy(line.length);
      // Behind keys that have waited since the last turn, before the one that had it.
      if (!turns.has(keyId)) turns.set(keyId, turn - 0.5);
      await stand(keyId, signal);
      let isHere = true;
      const leaveOnce = () => {
        if (isHere) leave(keyId);
        isHere = false;
      };
      return { isBusy: isIngestBusy, leave: leaveOnce };
    },
    counts: () => ({ working: sum(working.values()), waiting: line.length }),
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
