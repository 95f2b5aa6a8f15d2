import { type Backfill, type BackfillKey, endBackfill, openBackfill } from "#db/ingest/backfills.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { BackfillRoute } from "#model/kinds.ts";
import { backfillByExport } from "./backfill-by-export.ts";
import { backfillByList } from "./backfill-by-list.ts";
import { backfillBySearch } from "./backfill-by-search.ts";
import type { BackfillDeps, Expired } from "./backfill-deps.ts";
import { holdPatiently } from "./hold-patiently.ts";

/** Longer than the lease of a killed command. */
const WAIT_MS = 20_000;

const READ = { search: backfillBySearch, list: backfillByList, export: backfillByExport } satisfies Record<
  BackfillRoute,
  unknown
>;

export interface BackfillToRun {
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
 * after kill -9. It may run beside the service and beside another backfill: each page is one transaction with the
 * progress, storing an event twice changes nothing, and only the holder of the lease commits.
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
      return { wasEnded: false, newEvents: await endBackfill(database.db, key, clock()), expired };
    },
    signal,
  );
}
