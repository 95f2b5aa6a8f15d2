import { randomBytes } from "node:crypto";
import { readFeed, readFeedEnd } from "#db/alerting/feed-transitions.ts";
import type { Database } from "#db/client.ts";
import { readServerSecret } from "#db/service/server-secrets.ts";
import { createRowHub } from "#faces/http/feed/row-hub.ts";
import type { ApiDeps } from "#faces/http/routes/v1/api-deps.ts";
import type { Log } from "#lib/log.ts";
import type { Zones } from "#model/zones.ts";

/** How late a stream may say what has happened. */
const FEED_POLL_MS = 1_000;

export interface ApiParts extends Pick<ApiDeps, "clock" | "cursors" | "service"> {
  readonly database: Database;
  readonly archive: Database;
  readonly log: Log;
  /** Names and labels of zones; none without. */
  readonly zones?: () => Zones;
  readonly edge?: ApiDeps["edge"];
  /** Default 1 s. */
  readonly feedPollMs?: number;
  /** Without it, the sweep finds what was requested. */
  readonly enqueue?: (job: string, payload: Record<string, unknown>) => Promise<boolean>;
}

/** What the native API answers from and acts through. */
export async function openApi(parts: ApiParts): Promise<ApiDeps> {
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
