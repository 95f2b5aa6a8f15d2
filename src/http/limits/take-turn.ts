import type { FastifyRequest } from "fastify";
import type { Database } from "../../../db/client.ts";
import type { CostlyGate } from "./costly-gate.ts";

/** Events that are read in some ten milliseconds: who asks for no more waits for nobody. */
const COSTLY_ROWS = 20_000;

interface Turn {
  /** What to ask, in the way that spares ingest. */
  readonly archive: Database;
  /** As soon as there is an answer, or none. */
  readonly leave: () => void;
}

interface TurnParts {
  readonly archive: Database;
  readonly gate: CostlyGate;
  readonly isIngestBusy: () => Promise<boolean>;
}

/** Waits until a question that reads about so many events may run. @throws as `CostlyGate.enter` does. */
export type TakeTurn = (request: FastifyRequest, rows: number, signal: AbortSignal) => Promise<Turn>;

/**
 * Cheap questions run at once and costly ones in turns, in which they have only one process of the database each while
 * ingest is at work: it needs the processors more. Whoever waits for a turn keeps no connection and none of the places
 * of the requests that are worked on.
 */
export function createTakeTurn({ archive, gate, isIngestBusy }: TurnParts): TakeTurn {
  return async (request, rows, signal) => {
    if (rows <= COSTLY_ROWS) return { archive, leave: () => undefined };
    request.leavePlace?.();
    const isBusyNow = await isIngestBusy();
    const { isBusy, leave } = await gate.enter(request.caller?.keyId ?? "", isBusyNow, signal);
    return { archive: isBusy ? { ...archive, parallelWorkers: 0 } : archive, leave };
  };
}
