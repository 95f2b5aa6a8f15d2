import type { ZoneStore } from "../zone-store.ts";
import { createMatcher } from "./filter.ts";
import type { Search } from "./request.ts";
import { rowsInWindow } from "./window.ts";

/** Returns the rows of a search or export at `nowMs`, oldest first. */
export function findRows(store: ZoneStore, search: Search, nowMs: number): number[] {
  store.extendTo(nowMs);
  const matches = createMatcher(store.columns(), search);
  const rows = rowsInWindow(store, search, nowMs);
  return search.filters.length === 0 && search.query === "" ? rows : rows.filter(matches);
}

/** Returns one page of flat rows, newest first; events of the same millisecond by logId, descending. */
export function pageOfRows(rows: readonly number[], search: Pick<Search, "page" | "pageSize">): number[] {
  const end = rows.length - search.page * search.pageSize;
  return end <= 0 ? [] : rows.slice(Math.max(0, end - search.pageSize), end).reverse();
}
