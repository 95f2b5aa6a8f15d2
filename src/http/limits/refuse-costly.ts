import { formatWhole } from "../../lib/format.ts";
import { Refusal } from "../errors/refusal.ts";

interface CostEstimate {
  /** Rows that the search would read, before any limit of the page. */
  readonly rows: number;
}

/** @throws {Refusal} 400 that says how to narrow the search */
export type RefuseCostly = (estimate: CostEstimate) => void;

/** Refuses a search that its time limit would stop, before it runs. */
export function createRefuseCostly(maxRows: number): RefuseCostly {
  return ({ rows }) => {
    if (rows <= maxRows) return;
    const detail = `The search would read about ${round(rows)} events; at most ${round(maxRows)} are allowed. Choose a shorter time range, or filter by rule or address.`;
    throw new Refusal(400, { slug: "too-costly", detail });
  };
}

/** Rounds to two digits, because the estimate is not more exact. */
function round(rows: number): string {
  return formatWhole(Number(rows.toPrecision(2)));
}
