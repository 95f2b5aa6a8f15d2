import { countArchived, countStoredEvents } from "#db/archive/archived-days.ts";
import type { Queryable } from "#db/client.ts";
import type { OcsfSettings } from "#model/ocsf.ts";
import { estimateCost, readsPageOnly } from "#stages/archive/query/estimate-cost.ts";
import type { OpenedBlocks } from "#stages/archive/records/opened-blocks.ts";
import type { Caller } from "../caller.ts";
import type { SearchRequest } from "./plan-body.ts";
import type { SearchDeps } from "./search-deps.ts";

interface SearchPrice {
  /** `quick`: pages, and whatever takes some ten milliseconds. `long`: everything else. */
  readonly kind: "quick" | "long";
  /** CPU time that it is expected to use in Postgres, which cannot be measured. */
  readonly postgresMs?: number;
}

export interface SearchWork extends SearchPrice {
  readonly signal: AbortSignal;
  /** Waits as long as necessary and is not refused: a part of an answer whose beginning was sent. */
  readonly isPatient?: boolean;
}

/** The means of a process to read many events. */
export interface Searching {
  readonly openedBlocks: OpenedBlocks;
  /** @throws when a question would read more rows than one may. */
  readonly refuseCostly: (estimate: { rows: number }) => void;
  readonly ocsf: OcsfSettings;
  /**
   * Runs the work once it is the caller's turn. Events in Postgres and in files can be read only there, because only there
   * `run` gets the means.
   */
  readonly runInPlace: <T>(
    asked: { readonly caller: Caller | null },
    work: SearchWork,
    run: (deps: SearchDeps, signal: AbortSignal) => Promise<T>,
  ) => Promise<T>;
}

/** A search of this cost takes some ten milliseconds. */
const QUICK_COST = 20_000;

/**
 * Returns which places of the admission queue a search needs, and its CPU time in Postgres. @throws if it costs more than
 * a question may.
 */
export async function priceSearch(
  db: Queryable,
  { refuseCostly }: Pick<Searching, "refuseCostly">,
  { zoneId, plan }: SearchRequest,
): Promise<SearchPrice> {
  // To count first would take longer than the answer.
  if (readsPageOnly(plan)) return { kind: "quick" };
  const events = await countStoredEvents(db, zoneId, plan);
  const archivedEvents = await countArchived(db, zoneId, plan);
  const rows = Math.round(estimateCost(plan, { events, archivedEvents }));
  refuseCostly({ rows });
  const inPostgres = estimateCost(plan, { events: Math.max(0, events - archivedEvents), archivedEvents: 0 });
  return { kind: rows <= QUICK_COST ? "quick" : "long", postgresMs: inPostgres / 1_000 };
}
