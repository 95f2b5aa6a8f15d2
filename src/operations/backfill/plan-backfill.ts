import type { EdgeClient } from "#adapters/edge/edge-client.ts";
import type { Queryable } from "#db/client.ts";
import { readSearchedHours } from "#db/coverage/horizons.ts";
import type { Backfill, BackfillKey } from "#db/ingest/backfills.ts";
import { horizonAt, type Span, startOfDay, startOfHour } from "#model/horizon.ts";
import type { BackfillRoute } from "#model/kinds.ts";
import { pickRoute } from "./pick-route.ts";

export interface AskedBackfill extends Span {
  readonly zoneId: number;
  readonly route: BackfillRoute | "auto";
}

/** Returns the backfill to run. The start of a span of exactly 72 hours expires while it runs, so it is moved. */
export async function planBackfill(
  db: Queryable,
  { zoneId, route, ...span }: AskedBackfill,
  now: number,
): Promise<BackfillKey> {
  const from = Math.max(span.from, horizonAt(now));
  const to = Math.max(Math.min(span.to, now), from + 1);
  const range = { fromMs: startOfHour(from), toMs: to };
  const picked =
    route === "auto" ? pickRoute(now, { from, to }, await readSearchedHours(db, zoneId, range)) : route;
  return { zoneId, route: picked, from, to };
}

/** Returns the platform's count of what is left to read. Returns 0 if the search fails: the progress then has no total. */
export async function countUpstream(
  edge: Pick<EdgeClient, "searchEventLogs">,
  { route, doneThrough, to, zoneId }: Backfill,
  now: number,
): Promise<number> {
  const begin = route === "list" ? startOfDay(doneThrough) : doneThrough;
  const request = { from: Math.max(begin, horizonAt(now)), to, pageSize: 1 };
  if (request.from >= request.to) return 0;
  return edge.searchEventLogs({ shieldZoneId: zoneId, request }).then(
    ({ page }) => page.total,
    () => 0,
  );
}
