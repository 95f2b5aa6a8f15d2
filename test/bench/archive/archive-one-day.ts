/** Archives a zone's day with the bounds of the service: node archive-one-day.ts <database> <folder> <zone> <day>. */

import { createArchiveStore } from "#app/open-archive-store.ts";
import { createDatabase } from "#db/client.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";

const [url = "", folder = "", zone = "", day = ""] = process.argv.slice(2);
const database = createDatabase({ url, max: 2, applicationName: "bench", onError: () => undefined });
const archive = createArchiveStore(createFolderStorage(folder));
const written = await writeDay({ database, ...archive }, { zoneId: Number(zone), day });
await archive.duckdb.close();
await database.close();
const files = written.outcome === "written" ? written.files : [];
process.send?.(
  files.map(({ rows, bytes }) => ({ rows, bytes })),
  () => process.exit(0),
);
