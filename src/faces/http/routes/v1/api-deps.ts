import type { FeedRow } from "#db/alerting/feed-transitions.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { AuditEntry } from "#db/keys/audit-entries.ts";
import type { RequestedRun } from "#db/service/requested-runs.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { Zones } from "#model/zones.ts";
import type { PageCursors } from "#operations/page-cursor.ts";
import type { RunRequest } from "#operations/request-run.ts";
import type { Searching } from "#operations/search/searching.ts";
import type { ServiceView } from "#operations/service-view.ts";
import type { AskedWithdrawal, Withdrawal } from "#operations/withdraw-events.ts";
import type { RowHub } from "../../feed/row-hub.ts";

/** What the native API changes; each with its audit entry, safe twice and beside itself. */
export interface ApiActs {
  /** Null if too many runs of the zone are unfinished. */
  readonly requestRun: (
    wanted: RunRequest,
  ) => Promise<{ readonly run: RequestedRun; readonly isNew: boolean } | null>;
  /** Without `by`, nothing is removed. */
  readonly withdrawEvents: (
    asked: AskedWithdrawal,
    by: { readonly actor: string; readonly reason: string } | null,
    signal: AbortSignal,
  ) => Promise<Withdrawal>;
  /** For acts that change no row. */
  readonly audit: (entry: AuditEntry) => Promise<void>;
}

export interface ApiDeps {
  readonly service: ServiceView;
  readonly searching: Searching;
  readonly log: Pick<Log, "warn">;
  /** The pool for questions of clients. */
  readonly archive: Queryable;
  /** The pool for changes. */
  readonly database: Database;
  /** Hands work to a job now. */
  readonly enqueue: (job: string, payload: Record<string, unknown>) => Promise<boolean>;
  readonly clock: Clock;
  readonly cursors: PageCursors;
  readonly acts: ApiActs;
  readonly hub: RowHub<FeedRow>;
  /** Names and labels of zones as they are now. */
  readonly zones: () => Zones;
  /** The same on all replicas of this installation, and on no other. */
  readonly instanceId: string;
  /** Of a stream without events. Default 15 s. */
  readonly heartbeatMs?: number;
  /** At once, of one key in one process. Default 5. */
  readonly streamsPerKey?: number;
}
