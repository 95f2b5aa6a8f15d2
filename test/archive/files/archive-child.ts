import path from "node:path";
import { createDatabase } from "../../../db/client.ts";
import { createDuckdb } from "../../../db/duckdb/duckdb.ts";
import { createArchiveDaysJob } from "../../../jobs/archive/archive-days.ts";
import { rewriteDay } from "../../../jobs/archive/rewrite-day.ts";
import { createStorage } from "../../../src/app/create-storage.ts";
import { parseConfig } from "../../../src/config/config.ts";
import { restoreDay } from "../../../src/operations/archive/restore-day.ts";
import { silent } from "../../ingest/ingest-support.ts";
import { DAY, DAY_START, NOW } from "./tested-day.ts";

/**
 * Archives all days, or rewrites or restores DAY of a zone, in a process of its own: node archive-child.ts <database>
 * <folder> archive|rewrite|restore <zone> [step]. At the step it kills itself, as kill -9 does. The archive is in a
 * bucket if the environment says so.
 */
const [url = "", folder = "", work = "", zone = "", step = ""] = process.argv.slice(2);
process.once("disconnect", () => process.exit(0));
const database = createDatabase({ url, max: 4, applicationName: "archive child", onError: () => undefined });
const duckdb = createDuckdb({
  folders: [folder],
  spillInto: path.join(folder, "tmp"),
  memoryBytes: 160_000_000,
  residentBytes: 400_000_000,
});
const settings = parseConfig({ ...process.env, LONGWATCH_ARCHIVE_DIR: folder }).archive;
const archive = { storage: createStorage(settings, database.db), duckdb };
const onStep = (here: string) => {
  if (here === step) process.kill(process.pid, "SIGKILL");
};
const zoneDay = { zoneId: Number(zone), day: DAY };
if (work === "archive") {
  const job = createArchiveDaysJob({
    database,
    archive,
    clock: () => NOW,
    zoneIds: null,
    log: silent,
    onStep,
  });
  await job.run({} as never, new AbortController().signal);
} else if (work === "rewrite") {
  const change = { replace: () => "erased", untilAt: DAY_START + 86_400_000, isErasure: true };
  await rewriteDay({ database, archive, onStep }, zoneDay, change);
} else await restoreDay({ database, archive, onStep }, zoneDay, () => undefined);
await duckdb.close();
await database.close();
process.exit(0);
