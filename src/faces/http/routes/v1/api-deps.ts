import type { FeedRow } from "#db/alerting/feed-transitions.ts";
import type { RowHub } from "../../feed/row-hub.ts";
import type { OperationParts } from "../../operations.ts";

export interface ApiDeps extends OperationParts {
  readonly hub: RowHub<FeedRow>;
  /** Time between two heartbeats of a stream without events. Default 15 s. */
  readonly heartbeatMs?: number;
  /** The most streams of one key in one process at the same time. Default 5. */
  readonly streamsPerKey?: number;
}
