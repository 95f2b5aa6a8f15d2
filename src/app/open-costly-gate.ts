import type { Database } from "../../db/client.ts";
import { type CostlyGate, createCostlyGate } from "../http/limits/costly-gate.ts";

/** The longest that a costly search waits for its turn: with the time it may take itself, about as long as clients wait. */
const MAX_WAIT_MS = 15_000;

/** A third of the connections for costly searches: cheap ones, lists and exports never lack one because of them. */
export function openCostlyGate(
  { pool: { options } }: Pick<Database, "pool">,
  maxWaitMs = MAX_WAIT_MS,
): CostlyGate {
  const { max } = options;
  return createCostlyGate({
    places: Math.max(1, Math.floor(max / 3)),
    perKey: Math.max(1, max - 2),
    waiting: max * 2,
    maxWaitMs,
  });
}
