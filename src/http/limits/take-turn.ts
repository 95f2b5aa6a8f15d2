import type { FastifyRequest } from "fastify";
import type { Database } from "../../../db/client.ts";
import type { AdmissionQueue } from "./admission-queue.ts";

/** Reading so many events takes some ten milliseconds. A search that reads no more does not wait. */
const CHEAP_ROWS = 20_000;

interface Turn {
  /** The archive to search; with no parallel workers while ingest is busy. */
  readonly archive: Database;
  /** To be called when the search has ended, with or without a result. */
  readonly leave: () => void;
}

interface TurnParts {
  readonly archive: Database;
  readonly queue: AdmissionQueue;
  readonly isIngestBusy: () => Promise<boolean>;
}

/** Waits until a search that reads about `rows` events may run. @throws as `AdmissionQueue.enter` does. */
export type TakeTurn = (request: FastifyRequest, rows: number, signal: AbortSignal) => Promise<Turn>;

/**
 * Returns a function that admits cheap searches at once and expensive ones through the admission queue. While ingest is
 * busy, an expensive search uses one process of the database only, because ingest needs the processors more. A waiting
 * search holds no connection and no place of the concurrency limit.
 */
export function createTakeTurn({ archive, queue, isIngestBusy }: TurnParts): TakeTurn {
  return async (request, rows, signal) => {
    if (rows <= CHEAP_ROWS) return { archive, leave: () => undefined };
    request.leavePlace?.();
    const isBusyNow = await isIngestBusy();
    const { isBusy, leave } = await queue.enter(request.caller?.keyId ?? "", isBusyNow, signal);
    return { archive: isBusy ? { ...archive, parallelWorkers: 0 } : archive, leave };
  };
}
