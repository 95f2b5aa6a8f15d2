import { randomBytes } from "node:crypto";
import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import { createDatabase } from "#db/client.ts";
import { createHttp } from "#faces/http/http.ts";
import { createMetrics } from "#faces/http/metrics.ts";
import { addPlatform } from "#faces/http/routes/edge/add-platform.ts";
import { createLog } from "#lib/log.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { createPageCursors } from "#operations/operation.ts";
import { SERVICE } from "../faces/http/default-service.ts";
import { openFolder } from "./archive-folder.ts";
import { NOW } from "./now.ts";

/** The archive's HTTP in a process of its own, so that its memory is its own: tells its URL, and its peak when asked. */
const [databaseUrl = ""] = process.argv.slice(2);
const options = { url: databaseUrl, max: 2, applicationName: "archive process", onError: () => undefined };
const queries = createDatabase(options);
const folder = await openFolder();
const caller = { keyId: "1", name: "test", roles: ["exporter"], zoneIds: null, masked: false } as const;
const authenticate = async () => ({ ...caller, scopes: new Set(["read", "export"] as const) });
const app = await createHttp({
  checks: [],
  metrics: createMetrics(),
  readBacklog: () => Promise.reject(new Error("nobody asks")),
  log: createLog({ level: "error", stream: { write: () => undefined } }),
  authenticate,
  routes: [
    (scope) =>
      addPlatform(scope, {
        db: queries.db,
        cursors: createPageCursors(randomBytes(32)),
        clock: () => NOW,
        service: SERVICE,
        searching: {
          ocsf: { vendor: null, actions: BUILT_IN_ACTIONS },
          refuseCostly: () => undefined,
          openedBlocks: createOpenedBlocks(1_000_000),
          runInPlace: (_request, { signal }, run) => run({ queries, files: folder.files }, signal),
        },
        auditExport: async () => undefined,
        askAdvice: null,
      }),
  ],
  areMetricsPublic: true,
  limits: {
    perKeyAndMinute: 1_000,
    perAddressAndMinute: 1_000,
    perKey: { read: 9, export: 9 },
  },
  trustedProxies: [],
  writeSecurityEvent: async () => undefined,
});
process.on("message", () => process.send?.({ peakBytes: process.resourceUsage().maxRSS * 1_024 }));
process.on("disconnect", () => void folder.close().then(() => process.exit(0)));
process.send?.({ url: await app.listen({ host: "127.0.0.1", port: 0 }) });
