import type { ZoneStore } from "../zone-store.ts";
import { HORIZON_MS } from "../zone-store.ts";
import type { Mistakes, Search } from "./request.ts";

/** How far a window may reach into the future, because clocks differ. */
const FUTURE_TOLERANCE_MS = 5 * 60_000;

/** Returns the mistakes of a window. Its end must lie within the last 72 hours; its start may be older. */
export function checkWindow(search: Pick<Search, "to">, nowMs: number): Mistakes | undefined {
  if (search.to > nowMs + FUTURE_TOLERANCE_MS) {
    return { to: [`The value ${search.to} is not valid: to must not lie in the future (now is ${nowMs}).`] };
  }
  if (search.to < nowMs - HORIZON_MS) {
    return {
      to: [`The value ${search.to} is not valid: to must be within the last 72 hours (now is ${nowMs}).`],
    };
  }
  return undefined;
}

/** Returns the rows of the half-open window [from, to) that are visible at `nowMs`, oldest first. */
export function rowsInWindow(
  store: ZoneStore,
  window: { from: number; to: number },
  nowMs: number,
): number[] {
  const columns = store.columns();
  const oldestMs = Math.max(window.from, nowMs - HORIZON_MS + 1);
  const rows: number[] = [];
  for (let row = columns.lowerBound(oldestMs); row < columns.length() && columns.at(row) < window.to; row++) {
    if (columns.visibleAt(row) <= nowMs) rows.push(row);
  }
  return rows;
}
