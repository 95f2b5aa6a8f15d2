import type { AdviceResult } from "./read-recommendation.ts";

/** Failures that are the platform's own decision: its key says more than our code. */
const TELLING = new Set(["EDGE_PLAN", "EDGE_NOT_FOUND", "EDGE_REJECTED", "EDGE_WINDOW"]);

/**
 * A failed call as it is stored. The key keeps how long the platform wants to be left alone, as `CODE.milliseconds`,
 * so that every replica can read it from the rows.
 */
export function toFailedAdvice(error: {
  readonly code: string;
  readonly errorKey: string | null;
  readonly waitMs: number | undefined;
}): AdviceResult {
  const { code, errorKey, waitMs } = error;
  const own = waitMs === undefined ? code : `${code}.${Math.ceil(waitMs)}`;
  return {
    success: false,
    text: null,
    errorKey: errorKey !== null && TELLING.has(code) && waitMs === undefined ? errorKey : own,
  };
}
