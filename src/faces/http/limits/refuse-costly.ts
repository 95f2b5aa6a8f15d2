import { formatWhole } from "#lib/format.ts";
import { Refusal } from "#operations/refusal.ts";

interface CostEstimate {
  /** The cost of the search, as a number of events to read. */
  readonly rows: number;
}

/** @throws {Refusal} 400 that says how to narrow the search */
export type RefuseCostly = (estimate: CostEstimate) => void;

/** Refuses a search that its time limit would stop, before it runs. */
export function createRefuseCostly(maxRows: number): RefuseCostly {
  return ({ rows }) => {
    if (rows <= maxRows) return;
    const detail = `The search would cost as much as reading ${round(rows)} events; at most ${round(maxRows)} are allowed. Choose a shorter time range, or filter by rule or address.`;
    throw new Refusal(400, { slug: "too-costly", detail });
  };
}

/** Rounds to two digits, because the estimate is not more exact. */
function round(rows: number): string {
  return formatWhole(Number(rows.toPrecision(2)));
}
