/**
 * The service's own ingest in a process of its own: the job walk-days over HTTP into Postgres, one session per zone.
 * The parent sends one command at a time and gets one answer: walk a database's zones, or derive what follows from
 * their events.
 */

import { createDatabase } from "#db/client.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { WORK_SESSIONS } from "#db/postgres/server.ts";
import { createWalkDaysJob } from "#jobs/ingest/walk-days.ts";
import { createLog } from "#lib/log.ts";
import { createSecret } from "#lib/secret.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { derive, type SpentCpu, spend } from "./derive.ts";

export interface WalkCommand {
  readonly kind: "walk" | "derive";
  readonly databaseUrl: string;
  readonly platformUrl: string;
  readonly zones: readonly number[];
  /** Epoch ms, the clock of the run. */
  readonly now: number;
}

export interface WalkReport {
  readonly ms: number;
  readonly entries: number;
  readonly inserted: number;
  readonly quarantined: number;
  /** Largest resident memory of this process so far. */
  readonly peakRssBytes: number;
  readonly cpu: SpentCpu;
}

async function walk({ databaseUrl, platformUrl, zones, now }: WalkCommand): Promise<WalkReport> {
  const log = createLog({ level: "warn", stream: process.stderr });
  const onError = (err: Error) => log.error({ err }, "connection lost");
  const database = createDatabase({
    url: databaseUrl,
    max: 2 * zones.length + 2,
    applicationName: WORK_SESSIONS,
    onError,
  });
  const transport = createEdgeTransport({
    baseUrl: platformUrl,
    accessKey: createSecret("bench-access-key"),
  });
  const sum = { entries: 0, inserted: 0, quarantined: 0 };
  const job = createWalkDaysJob({
    database,
    partitions: createPartitionKeeper(database),
    edge: createEdgeClient(transport),
    clock: () => now,
    log,
    observer: {
      pageStored(page) {
        sum.entries += page.entries;
        sum.inserted += page.inserted;
        sum.quarantined += page.quarantined;
      },
    },
    settleMs: 15 * MINUTE_MS,
    fullEveryMs: 15 * MINUTE_MS,
    idleFullEveryMs: 60 * MINUTE_MS,
    shortEveryMs: 1.5 * MINUTE_MS,
    afterPage: () => undefined,
  });
  const signal = new AbortController().signal;
  const { result: ms, cpu } = await spend(database, async () => {
    const startedAt = performance.now();
    await Promise.all(zones.map((zoneId) => job.run({ zoneId } as never, signal)));
    return performance.now() - startedAt;
  });
  await transport.close();
  await database.close();
  const peakRssBytes = process.resourceUsage().maxRSS * 1_024;
  return { ms, ...sum, peakRssBytes, cpu };
}

process.on("message", (command: WalkCommand) => {
  const { kind, databaseUrl, zones, now } = command;
  void (kind === "walk" ? walk(command) : derive(databaseUrl, zones, now)).then(
    (report) => process.send?.(report),
    (thrown: unknown) => {
      console.error(thrown);
      process.exit(1);
    },
  );
});
process.on("disconnect", () => process.exit());
process.send?.("ready");
