/**
 * The service's HTTP in a process of its own, launched as the service is: tells its URL first, then its memory each
 * time it is asked. Every request may do everything; a key would only add the look-up of a key.
 */

import { randomBytes } from "node:crypto";
import { listRoutes, openFeed, openSearching } from "#app/list-routes.ts";
import { createDatabase } from "#db/client.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { createHttp } from "#faces/http/http.ts";
import { createMetrics } from "#faces/http/metrics.ts";
import { createAuditExport } from "#faces/http/routes/edge/platform.ts";
import { systemClock } from "#lib/clock.ts";
import { createLog } from "#lib/log.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { createPageCursors } from "#operations/operation.ts";
import { SERVICE } from "../../faces/http/default-service.ts";
import { openFiles } from "./archive-days.ts";

export interface ServedArchive {
  readonly url: string;
}

export interface ServerMemory {
  /** Resident, the most so far. */
  readonly peakBytes: number;
}

const NO_LIMIT = 1_000_000;
const SAMPLE_MS = 10;
const [databaseUrl = "", folder = "", now = "0", ...zones] = process.argv.slice(2);
// A failed request fails the measurement; what is stopped at the end is no news.
const log = createLog({ level: "error", stream: { write: () => undefined } });
const onError = (err: Error) => log.error({ err }, "connection lost");
const queries = createDatabase({ url: databaseUrl, max: 6, applicationName: "bench archive", onError });
const caller = { keyId: "1", name: "bench", roles: ["exporter"], zoneIds: null, masked: false } as const;
const authenticate = async () => ({ ...caller, scopes: new Set(["read", "export"] as const) });
const app = await createHttp({
  checks: [],
  metrics: createMetrics(),
  readBacklog: () => Promise.reject(new Error("not part of the benchmark")),
  log,
  authenticate,
  routes: listRoutes(
    {
      database: queries,
      db: queries.db,
      clock: () => Number(now),
      cursors: createPageCursors(randomBytes(32)),
      zones: () => ({}),
      log,
      edge: null,
      enqueue: async () => false,
      service: { ...SERVICE, zoneIds: zones.map(Number) },
      searching: openSearching({
        queries,
        files: openFiles(folder).files,
        refuseCostly: () => undefined,
        ocsf: { vendor: null, actions: BUILT_IN_ACTIONS },
      }),
      instanceId: "",
      auditExport: createAuditExport((entry) => writeAuditEntry(queries.db, entry), systemClock),
      askAdvice: null,
    },
    openFeed(queries.db, log),
  ),
  areMetricsPublic: true,
  limits: {
    perKeyAndMinute: NO_LIMIT,
    perAddressAndMinute: NO_LIMIT,
    perKey: { read: 4, export: 4 },
  },
  trustedProxies: [],
  writeSecurityEvent: async () => undefined,
});
// Not maxRSS: that keeps what the parent had when it started this process.
let peakBytes = 0;
setInterval(() => {
  peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
}, SAMPLE_MS);
process.on("disconnect", () => process.exit());
process.on("message", () => {
  process.send?.({ peakBytes } satisfies ServerMemory);
});
const url = await app.listen({ host: "127.0.0.1", port: 0 });
process.send?.({ url } satisfies ServedArchive);
