import type { FeedRow } from "#db/alerting/feed-transitions.ts";
import type { Database, Queryable } from "#db/client.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { Zones } from "#model/zones.ts";
import type { Changing } from "#operations/operation.ts";
import type { PageCursors } from "#operations/page-cursor.ts";
import type { Searching } from "#operations/search/searching.ts";
import type { ServiceView } from "#operations/service-view.ts";
import type { RowHub } from "../../feed/row-hub.ts";

export interface ApiDeps {
  readonly service: ServiceView;
  readonly searching: Searching;
  readonly log: Pick<Log, "warn">;
  /** The pool for questions of clients. */
  readonly archive: Queryable;
  /** The pool for changes. */
  readonly database: Database;
  /** The platform. Without it, hours that the platform still has cannot be checked. */
  readonly edge: Changing["edge"];
  /** Hands work to a job now. */
  readonly enqueue: (job: string, payload: Record<string, unknown>) => Promise<boolean>;
  readonly clock: Clock;
  readonly cursors: PageCursors;
  readonly hub: RowHub<FeedRow>;
  /** Names and labels of zones as they are now. */
  readonly zones: () => Zones;
  /** The same on all replicas of this installation, and on no other. */
  readonly instanceId: string;
  /** Time between two heartbeats of a stream without events. Default 15 s. */
  readonly heartbeatMs?: number;
  /** The most streams of one key in one process at the same time. Default 5. */
  readonly streamsPerKey?: number;
}
