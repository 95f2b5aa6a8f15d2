import path from "node:path";
import { createDatabase } from "#db/client.ts";
import { createDuckdb } from "#db/duckdb/duckdb.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { type ArchiveWork, doArchiveWork } from "./archive-work.ts";

/**
 * Works on archive days in a process of its own, and kills itself at a step, as kill -9 does: node archive-child.ts
 * <database> <folder> archive|rewrite|facts|restore <zone> <step>. The archive is in a bucket if the environment says so.
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
const archive = { storage: await openStorage(), duckdb };

/** Most of these processes use a folder, and the settings are half of what a process has to load. */
async function openStorage() {
  if (process.env["LONGWATCH_ARCHIVE_URL"] === undefined) return createFolderStorage(folder);
  const [{ parseConfig }, { createStorage }] = await Promise.all([
    import("#config/config.ts"),
    import("#app/open-archive-store.ts"),
  ]);
  const settings = parseConfig({ ...process.env, LONGWATCH_ARCHIVE_DIR: folder });
  return createStorage(settings.archive, database.db);
}

const onStep = (here: string) => {
  if (here === step) process.kill(process.pid, "SIGKILL");
};
await doArchiveWork({ database, archive, onStep }, work as ArchiveWork, Number(zone));
// The work has ended without reaching the step.
process.exit(1);
