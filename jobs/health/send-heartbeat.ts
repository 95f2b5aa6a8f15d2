import { z } from "zod";
import { readZoneHealth } from "#db/proof/platform-health.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";
import { isPolled } from "./conditions/service.ts";

/** Sends one heartbeat. Throws DeliveryError, or the signal's reason. */
export type Heartbeat = (signal: AbortSignal) => Promise<void>;

export interface SendHeartbeatDeps
  extends Pick<JobContext, "database" | "clock" | "log" | "zoneIds" | "pollEveryMs"> {
  readonly heartbeat: Heartbeat;
}

/**
 * Sends a heartbeat to an external monitor once a minute while every zone's events arrive. Sends none if they do not,
 * and cannot send one when Longwatch, its database or its network is down. The monitor then raises the alarm.
 */
export function createSendHeartbeatJob(deps: SendHeartbeatDeps): AnyJob {
  const { database, clock, log, zoneIds, heartbeat } = deps;
  return defineJob({
    name: "send-heartbeat",
    queue: "alerts",
    payload: z.object({}),
    // The next heartbeat is due in a minute.
    attempts: 1,
    timeoutMs: 30_000,
    async run(_payload, signal) {
      const nowMs = clock();
      const zones = await readZoneHealth(database.db, zoneIds);
      const unseen = zones
        .filter((zone) => !isPolled(zone, nowMs, deps.pollEveryMs))
        .map(({ zoneId }) => zoneId);
      if (unseen.length > 0) {
        log.warn({ zoneIds: unseen }, "heartbeat withheld");
        return `zones without a poll: ${unseen.join(", ")}`;
      }
      await heartbeat(signal);
      log.debug({}, "heartbeat sent");
      return undefined;
    },
  });
}
