import { Refusal } from "../errors/refusal.ts";

interface CostEstimate {
  /** Rows that would be read to answer, before any limit of the page. */
  readonly rows: number;
}

/** @throws {Refusal} 400 with how to narrow the question. */
export type RefuseCostly = (estimate: CostEstimate) => void;

/** Refuses before it runs what would only be stopped by its time limit. */
export function createRefuseCostly(maxRows: number): RefuseCostly {
  return ({ rows }) => {
    if (rows <= maxRows) return;
    const detail = `The search would read about ${round(rows)} events; at most ${round(maxRows)} are allowed. Choose a shorter time range, or filter by rule or address.`;
    throw new Refusal(400, { slug: "too-costly", detail });
  };
}

/** Two digits: more would say how exactly an estimate is known. */
function round(rows: number): string {
  return Number(rows.toPrecision(2)).toLocaleString("en");
}
