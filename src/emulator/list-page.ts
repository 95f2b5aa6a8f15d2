import type { Place } from "./tokens.ts";
import type { Draft } from "./traffic/draft.ts";
import { compareDrafts } from "./traffic/draft.ts";
import { shareOf } from "./traffic/render-event.ts";
import type { ZoneStore } from "./zone-store.ts";

export interface ListPage {
  readonly drafts: readonly Draft[];
  readonly hasMore: boolean;
}

export interface ListQuery {
  readonly startMs: number;
  readonly endMs: number;
  readonly place: Place;
  readonly pageSize: number;
  /** Fault: this share of the events is left out, always the same events. */
  readonly droppedShare: number;
  readonly features: "all" | "waf";
  readonly nowMs: number;
}

/** Yields rows of the day after a place, in the place's order. */
function* rowsFrom(store: ZoneStore, query: ListQuery): Generator<number> {
  const { place } = query;
  const columns = store.columns();
  const begin = columns.lowerBound(query.startMs);
  const end = columns.lowerBound(query.endMs);
  if (place.order === "oldest") {
    for (let row = place.after === null ? begin : store.rowAfter(place.after); row < end; row++) yield row;
    return;
  }
  let row = (place.after === null ? end : Math.min(end, store.rowAfter(place.after))) - 1;
  if (place.after !== null && row >= begin && compareDrafts(store.draft(row), place.after) === 0) row--;
  for (; row >= begin; row--) yield row;
}

/**
 * Returns the next entries after a position. A position is an event, not a count. So an event that becomes visible
 * late before the position is missed by this pass and shifts nothing.
 */
export function listPage(store: ZoneStore, query: ListQuery): ListPage {
  const columns = store.columns();
  const drafts: Draft[] = [];
  for (const row of rowsFrom(store, query)) {
    if (columns.visibleAt(row) > query.nowMs) continue;
    const draft = store.draft(row);
    if (query.features === "waf" && draft.rule.feature !== "waf") continue;
    if (query.droppedShare > 0 && shareOf(draft) < query.droppedShare) continue;
    if (drafts.length === query.pageSize) return { drafts, hasMore: true };
    drafts.push(draft);
  }
  return { drafts, hasMore: false };
}
