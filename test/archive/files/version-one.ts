import path from "node:path";
import {
  addSums,
  countRules,
  readStatement,
  statementPath,
  toStatedFile,
  writeStatement,
} from "#archive/rules/files/day-statement.ts";
import { enterFiles, listValidFiles } from "#db/archive/archive-files.ts";
import { readFile, sumEventsFile } from "#db/archive/day-files.ts";
import type { ZoneDay } from "#db/archive/day-source.ts";
import { hashFile } from "#lib/files.ts";
import { archivePath, storedColumns } from "#model/archive-layout.ts";
import type { ArchiveWorld } from "./archive-world.ts";

/** Puts a day into the archive as the first version of its files had it: without facts, host and path. */
export async function toVersionOne({ database, duckdb, storage, folder }: ArchiveWorld, zoneDay: ZoneDay) {
  const { zoneId, day } = zoneDay;
  const files = await listValidFiles(database.db, zoneDay);
  const events = files.find(({ kind }) => kind === "events");
  const statement = readStatement(await storage.readText(statementPath(zoneId, day)));
  if (events === undefined || statement === null) throw new Error("the day is not in the archive");
  const file = path.join(folder, "tmp", `${zoneId}-${day}-one.parquet`);
  const rows = `select ${storedColumns(1).join(", ")} from ${readFile(path.join(folder, events.path))} order by file_row_number`;
  await duckdb.run([{ sql: `copy (${rows}) to '${file}' (format parquet)` }]);
  const [hash, sums] = [await hashFile(file), await sumEventsFile(duckdb, file, 1)];
  const name = archivePath("events", zoneId, day, hash.sha256);
  await storage.put(file, name, hash);
  const [sum, format] = [addSums(sums), 1];
  const [firstAt, lastAt] = [events.firstAt?.getTime() ?? null, events.lastAt?.getTime() ?? null];
  const old = { ...zoneDay, ...hash, kind: "events" as const, path: name, sum, format, firstAt, lastAt };
  await enterFiles(database.db, [{ ...old, rows: events.rows, hours: events.hours, isUploaded: false }]);
  const stated = (await listValidFiles(database.db, zoneDay)).map(toStatedFile);
  const one = { ...statement, format, files: stated, eventsPerRule: countRules(sums) };
  await storage.writeText(statementPath(zoneId, day), writeStatement(one));
}
