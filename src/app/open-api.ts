import { randomBytes } from "node:crypto";
import { readFeed, readFeedEnd } from "#db/alerting/feed-transitions.ts";
import type { Database } from "#db/client.ts";
import { readServerSecret } from "#db/service/server-secrets.ts";
import { createRowHub } from "#faces/http/feed/row-hub.ts";
import type { ApiDeps } from "#faces/http/routes/v1/api-deps.ts";
import type { Log } from "#lib/log.ts";
import type { Zones } from "#model/zones.ts";

/** Maximum delay of a transition in the stream. */
const FEED_POLL_MS = 1_000;

export interface ApiParts extends Pick<ApiDeps, "clock" | "cursors" | "service"> {
  readonly database: Database;
  readonly archive: Database;
  readonly log: Log;
  /** Returns names and labels of the zones. Default: none. */
  readonly zones?: () => Zones;
  readonly edge?: ApiDeps["edge"];
  /** Default 1 s. */
  readonly feedPollMs?: number;
  /** Enqueues a job at once. Without it, the sweep finds the requested work later. */
  readonly enqueue?: (job: string, payload: Record<string, unknown>) => Promise<boolean>;
}

/** Returns the parts that the native API needs. */
export async function openApi(parts: ApiParts): Promise<Omit<ApiDeps, "searching">> {
  const { database, archive, log, feedPollMs, zones = () => ({}), enqueue, edge = null, ...given } = parts;
  const { db } = archive;
  const instance = await readServerSecret(database.db, "instance-id", randomBytes(8));
  return {
    ...given,
    log,
    zones,
    archive: db,
    database,
    enqueue: enqueue ?? (async () => false),
    edge,
    instanceId: instance.toString("hex"),
    hub: createRowHub({
      pollEveryMs: feedPollMs ?? FEED_POLL_MS,
      readEnd: () => readFeedEnd(db),
      read: (after, limit) => readFeed(db, { after, limit, zoneIds: null }),
      onError: (error) => log.warn({ err: error }, "alert feed not read"),
    }),
  };
}
