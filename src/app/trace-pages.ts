import type { Database } from "#db/client.ts";
import { readOpenedSpikes } from "#db/detection/opened-spikes.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type Trace, type TracedPage, tracePage } from "#model/spike-trace.ts";
import type { IngestObserver } from "#stages/ingest/ingest-observer.ts";

const LOOK_EVERY_MS = 10_000;
/** The longest window of a spike, plus time for its detection. */
const KEPT_MS = 75 * MINUTE_MS;
const MOST_KEPT = 5_000;
/** Number of pages before a spike's detection that its trace contains. */
const MOST_PAGES = 20;

interface PageTracingParts {
  readonly database: Pick<Database, "db">;
  readonly clock: Clock;
  readonly log: Pick<Log, "debug">;
  readonly trace: Trace;
  /** Default 10 s. */
  readonly lookEveryMs?: number;
}

/**
 * Returns the same observer, which also remembers pages with new events. After a spike has opened, each process that
 * stored pages of its zone adds them to the spike's trace.
 */
export function tracePages(
  observer: IngestObserver,
  { database, clock, log, trace, lookEveryMs = LOOK_EVERY_MS }: PageTracingParts,
  stack: StopStack,
): IngestObserver {
  let pages: (TracedPage & { readonly zoneId: number })[] = [];
  let lookedAt = clock();
  const traced = new Set<number>();

  async function look(): Promise<void> {
    const now = clock();
    pages = pages.filter(({ committedAt }) => committedAt > now - KEPT_MS).slice(-MOST_KEPT);
    // A spike's first minute may end some minutes before the spike is found.
    const spikes = await readOpenedSpikes(database.db, lookedAt - KEPT_MS);
    for (const spike of spikes.filter(({ id }) => !traced.has(id))) {
      traced.add(spike.id);
      const from = spike.openedAt - spike.windowMinutes * MINUTE_MS;
      const own = pages.filter(
        ({ zoneId, committedAt }) => zoneId === spike.zoneId && committedAt >= from && committedAt <= now,
      );
      if (own.length > 0) trace(own.slice(-MOST_PAGES).map((page) => tracePage(spike, page)));
    }
    const known = new Set(spikes.map(({ id }) => id));
    for (const id of traced) if (!known.has(id)) traced.delete(id);
    lookedAt = now;
  }

  const timer = setInterval(() => {
    look().catch((thrown: unknown) => log.debug({ err: thrown }, "pages not traced"));
  }, lookEveryMs);
  stack.defer("page traces", () => clearInterval(timer));
  return {
    pageStored(facts) {
      observer.pageStored(facts);
      const { zoneId, route, entries, inserted, commitMs } = facts;
      if (inserted > 0) pages.push({ zoneId, route, entries, inserted, commitMs, committedAt: clock() });
    },
  };
}
