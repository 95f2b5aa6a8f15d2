/** Plans a backfill and runs it. */

import type { Queryable } from "#db/client.ts";
import { holdPatiently } from "#db/postgres/hold-lease.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import {
  type Backfill,
  type BackfillKey,
  finishHours,
  openBackfill,
  readBackfill,
} from "#db/proof/backfills.ts";
import { readSearchedHours } from "#db/proof/horizons.ts";
import { DAY_MS } from "#lib/units.ts";
import { firstListedDay, horizonAt, type Span, startOfDay, startOfHour } from "#model/horizon.ts";
import type { BackfillRoute } from "#model/kinds.ts";
import type { EdgeClient } from "#platform/edge-client.ts";
import { isBackfilled, type SearchedHour } from "#proof/rules/plan-search.ts";
import type { BackfillDeps, Expired } from "./backfill-deps.ts";
import { backfillByExport, backfillByList, backfillBySearch } from "./backfill-routes.ts";

/** Longer than the lease of a killed command. */
const WAIT_MS = 20_000;

const READ = { search: backfillBySearch, list: backfillByList, export: backfillByExport } satisfies Record<
  BackfillRoute,
  unknown
>;

interface BackfillToRun {
  readonly key: BackfillKey;
  /** Begins at the start of the span, even if a part was read before. */
  readonly restart: boolean;
  /** Called before anything is read. */
  readonly onOpened: (backfill: Backfill) => Promise<void>;
}

export interface RanBackfill {
  /** Whether the backfill was already complete, so that nothing was read. */
  readonly wasEnded: boolean;
  readonly newEvents: number;
  /** The spans that the platform forgot before they were read. */
  readonly expired: readonly Expired[];
}

/**
 * Reads a span of a zone again and stores the missing events. An interrupted backfill continues where it stopped, even
 * after kill -9: the last page of an hour is one transaction with the mark that the hour was read. It may run beside the service
 * and beside another backfill: storing an event twice changes nothing, and only the holder of the lease commits.
 */
export function runBackfill(
  deps: BackfillDeps,
  { key, restart, onOpened }: BackfillToRun,
  signal: AbortSignal,
): Promise<RanBackfill> {
  const { database, clock, onWait } = deps;
  const name = `backfill.${key.zoneId}`;
  const wait = () => onWait(`waiting: another backfill of zone ${key.zoneId} runs or was just killed`);
  return holdPatiently(
    database,
    { name, waitMs: WAIT_MS, onWait: wait },
    async (lease) => {
      const backfill = await inTransaction(database, ({ tx }) =>
        openBackfill(tx, key, { now: clock(), restart }),
      );
      await onOpened(backfill);
      if (backfill.endedAt !== null) return { wasEnded: true, newEvents: backfill.newEvents, expired: [] };
      const expired = await READ[key.route](deps, { backfill, lease }, AbortSignal.any([signal, lease.lost]));
      // The hours that the platform forgot before they were read.
      await finishHours(database.db, backfill, { ...key, doneAt: clock() });
      const { newEvents } = await readBackfill(database.db, key, backfill.at);
      return { wasEnded: false, newEvents, expired };
    },
    signal,
  );
}

export interface AskedBackfill extends Span {
  readonly zoneId: number;
  readonly route: BackfillRoute | "auto";
}

/**
 * Returns the backfill to run. It begins with the whole hour of `from`, or with the oldest moment that the platform will still
 * show: the start of a span of exactly 72 hours expires while the backfill runs.
 */
export async function planBackfill(
  db: Queryable,
  { zoneId, route, ...span }: AskedBackfill,
  now: number,
): Promise<BackfillKey> {
  const from = Math.max(startOfHour(span.from), horizonAt(now));
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

/**
 * Returns the fastest route that leaves nothing unknown. A search has every dimension of an event. The list has larger
 * pages but neither feature nor JA4, so it is picked only for whole days that were searched: it then adds records and
 * events that the search did not show. The export is never picked, because messages would stay unknown.
 */
function pickRoute(now: number, { from, to }: Span, hours: readonly SearchedHour[]): BackfillRoute {
  const isDays = from % DAY_MS === 0 && (to % DAY_MS === 0 || to === now) && to - from >= DAY_MS;
  if (!isDays || from < firstListedDay(now)) return "search";
  return isBackfilled(now, hours, { fromMs: from, toMs: to }) ? "list" : "search";
}
