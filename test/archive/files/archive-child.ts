import path from "node:path";
import { createDatabase } from "../../../db/client.ts";
import { createDuckdb } from "../../../db/duckdb/duckdb.ts";
import { createArchiveDaysJob } from "../../../jobs/archive/archive-days.ts";
import { silent } from "../../ingest/ingest-support.ts";

/**
 * Runs archive-days in a process of its own: node archive-child.ts <database> <folder> <now> [step]. At the step it kills
 * itself, as kill -9 does. At the end it sends the most memory that it and DuckDB's process have taken.
 */
const [url = "", folder = "", now = "", step = ""] = process.argv.slice(2);
process.once("disconnect", () => process.exit(0));
const database = createDatabase({ url, max: 4, applicationName: "archive child", onError: () => undefined });
const duckdb = createDuckdb({
  folders: [folder],
  spillInto: path.join(folder, "tmp"),
  memoryBytes: 160_000_000,
  residentBytes: 400_000_000,
});
const job = createArchiveDaysJob({
  database,
  archive: { folder, duckdb },
  clock: () => Number(now),
  zoneIds: null,
  log: silent,
  onStep: (here) => {
    if (here === step) process.kill(process.pid, "SIGKILL");
  },
});
await job.run({} as never, new AbortController().signal);
await duckdb.close();
await database.close();
process.send?.({ peakBytes: process.resourceUsage().maxRSS * 1_024 }, () => process.exit(0));
