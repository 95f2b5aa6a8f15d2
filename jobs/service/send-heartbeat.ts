import { z } from "zod";
import type { Database } from "../../db/client.ts";
import { readZoneHealth } from "../../db/service/platform-health.ts";
import { isPolled, quietLimit } from "../../src/alerting/self/service-alert.ts";
import type { Clock } from "../../src/lib/clock.ts";
import type { Log } from "../../src/lib/log.ts";
import { type AnyJob, defineJob } from "../../src/queue/define-job.ts";

/** One sign of life; throws DeliveryError, or the signal's reason. */
export type Heartbeat = (signal: AbortSignal) => Promise<void>;

export interface SendHeartbeatDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly zoneIds: readonly number[];
  readonly pollEveryMs: number;
  readonly heartbeat: Heartbeat;
}

/**
 * A dead man's switch: tells a watcher outside, once a minute, that every zone's events arrive. It says nothing when they do
 * not, and cannot when Longwatch, its database or its network is down; the watcher then raises the alarm.
 */
export function createSendHeartbeatJob(deps: SendHeartbeatDeps): AnyJob {
  const { database, clock, log, zoneIds, heartbeat } = deps;
  return defineJob({
    name: "send-heartbeat",
    queue: "alerts",
    payload: z.object({}),
    // The next one is due in a minute.
    attempts: 1,
    timeoutMs: 30_000,
    async run(_payload, signal) {
      const nowMs = clock();
      const limitMs = quietLimit(deps.pollEveryMs);
      const zones = await readZoneHealth(database.db, zoneIds);
      const unseen = zones.filter((zone) => !isPolled(zone, nowMs, limitMs)).map(({ zoneId }) => zoneId);
      if (unseen.length > 0) return log.warn({ zoneIds: unseen }, "heartbeat withheld");
      await heartbeat(signal);
      log.debug({}, "heartbeat sent");
    },
  });
}
