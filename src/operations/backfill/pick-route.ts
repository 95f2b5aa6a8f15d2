import type { BackfillRoute } from "../../../db/ingest/backfills.ts";
import { isBackfilled, type SearchedHour } from "../../coverage/plan-search.ts";
import { DAY_MS } from "../../lib/units.ts";
import { firstListedDay } from "../../model/horizon.ts";
import type { Span } from "../../model/span.ts";

/**
 * The fastest route that leaves nothing unknown. A search brings every dimension of an event. The list has larger pages but
 * knows neither feature nor JA4, so it is enough only for whole days that have been searched: then it adds what the
 * search did not show, and the records. The export would leave messages unknown for good: it is never picked.
 */
export function pickRoute(now: number, { from, to }: Span, hours: readonly SearchedHour[]): BackfillRoute {
  const isDays = from % DAY_MS === 0 && (to % DAY_MS === 0 || to === now) && to - from >= DAY_MS;
  if (!isDays || from < firstListedDay(now)) return "search";
  return isBackfilled(now, hours, { fromMs: from, toMs: to }) ? "list" : "search";
}
