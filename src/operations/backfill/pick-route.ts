import { DAY_MS } from "#lib/units.ts";
import { firstListedDay, type Span } from "#model/horizon.ts";
import type { BackfillRoute } from "#model/kinds.ts";
import { isBackfilled, type SearchedHour } from "#stages/coverage/plan-search.ts";

/**
 * Returns the fastest route that leaves nothing unknown. A search has every dimension of an event. The list has larger
 * pages but neither feature nor JA4, so it is picked only for whole days that were searched: it then adds records and
 * events that the search did not show. The export is never picked, because messages would stay unknown.
 */
export function pickRoute(now: number, { from, to }: Span, hours: readonly SearchedHour[]): BackfillRoute {
  const isDays = from % DAY_MS === 0 && (to % DAY_MS === 0 || to === now) && to - from >= DAY_MS;
  if (!isDays || from < firstListedDay(now)) return "search";
  return isBackfilled(now, hours, { fromMs: from, toMs: to }) ? "list" : "search";
}
