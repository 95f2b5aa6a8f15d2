import type { Database } from "../../db/client.ts";
import { readCoveredHours } from "../../db/queries/covered-hours.ts";
import { readServiceStatus } from "../../db/queries/service-status.ts";
import type { Clock } from "../clock.ts";
import type { Config } from "../config.ts";
import { DAY_MS, HOUR_MS, horizonAt, startOfHour } from "../coverage/horizon.ts";
import { hoursToLoss } from "../coverage/hours-to-loss.ts";
import { createHttp } from "../http/http.ts";
import type { Backlog, Metrics } from "../http/metrics.ts";
import type { Log } from "../log.ts";
import type { StopStack } from "../stop-stack.ts";
import type { OpenQueues } from "./open-queues.ts";

export interface HttpParts {
  readonly config: Pick<Config, "http">;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly database: Database;
  readonly queues: Pick<OpenQueues, "check">;
  readonly clock: Clock;
  readonly zoneIds: readonly number[];
}

/** Listens, and returns the URL. */
export async function openHttp(parts: HttpParts, stack: StopStack): Promise<string> {
  const { config, log, metrics, database, queues } = parts;
  const http = createHttp({
    log,
    metrics,
    checks: [
      {
        name: "postgres",
        isRequired: true,
        async check() {
          await database.pool.query("select 1");
          return { state: "ok" };
        },
      },
      { name: "queues", isRequired: false, check: () => queues.check() },
    ],
    readBacklog: () => readBacklog(parts),
  });
  stack.defer("http", () => http.close());
  return http.listen({ host: config.http.host, port: config.http.port });
}

async function readBacklog({ database, clock, zoneIds }: HttpParts): Promise<Backlog> {
  const now = clock();
  const { zones, ...work } = await readServiceStatus(database.db, zoneIds, now - 4 * DAY_MS);
  const range = { fromMs: startOfHour(horizonAt(now)), toMs: now + HOUR_MS };
  const read = async ({ zoneId, newestAt }: (typeof zones)[number]) => ({
    zoneId,
    ingestLagSeconds: newestAt === null ? null : Math.max(0, (now - newestAt) / 1_000),
    hoursToLoss: hoursToLoss(now, await readCoveredHours(database.db, zoneId, range)),
  });
  return { ...work, zones: await Promise.all(zones.map(read)) };
}
