/** The command that imports events from files. */

import { existsSync, statSync } from "node:fs";
import path from "node:path";
import { maskText } from "#archive/rules/mask.ts";
import { DuckdbError } from "#db/duckdb/duckdb-messages.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { holdPatiently } from "#db/postgres/hold-lease.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { type Imported, importFile } from "#health/backup/import-events.ts";
import { ARCHIVE_LEASE } from "#jobs/archive/archive-store.ts";
import { formatWhole, many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { createPseudonymKeyring } from "#people/privacy/pseudonym-keyring.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import { CsvFileError } from "#proof/backfill/read-csv.ts";
import { findZones, readActor } from "./options/read-options.ts";
import { BY, defineTask, onStore } from "./store/define-task.ts";
import { withFiles } from "./store/store-command.ts";

const ENDINGS = /\.(csv|ndjson|jsonl)(\.(gz|zst))?$|\.parquet$/;
const ENDING_RULE = "files that end in .csv, .ndjson or .jsonl, also with .gz or .zst, or in .parquet";
const MOST_SHOWN = 20;
/** A day is archived within minutes. */
const WAIT_MS = 600_000;

const HELP = `
Stores events of files as history. Accepted are
  CSV       of edge events export and of export: a first line with logId and timestamp, or time; a column zone, and others
  NDJSON    of export, of search --format event and --format raw; or log lines and whole answers of the platform, one a line
  Parquet   of export, and the events files of an archive
also compressed as .gz or .zst, except Parquet. --zone is the zone of rows that name none.

An event keeps its log id and is stored once: an import of what is stored changes nothing, and an interrupted import is run
again. Hours from before the zone was watched become "imported": not proven, and no loss. Hours that the platform still
shows are proven as ever. A lost hour stays lost. Refused are events of an hour that is proven without them, of an unknown
zone, or older than the retention. Rows that are no events go to the quarantine. Old addresses become pseudonyms, and erased
ones stay erased. NDJSON is exact; in CSV an apostrophe before = + - @ is taken for the mark that export writes.
Exit code 1 if a row was not stored.

Examples:
  npm run -s longwatch -- import october.csv.gz --zone 101
  npm run -s longwatch -- import all-zones.ndjson.zst --json
  npm run -s longwatch -- import logs/*.ndjson october/events/zone=101/*/*.parquet --zone 101`;

/** `longwatch import`: stores the events of files as history. */
export const importCommand = defineTask({
  name: "import",
  help: HELP,
  operand: ["file...", ENDING_RULE],
  options: { "--zone <id>": "shield zone of rows that name none", ...BY },
  json: "print the counts and the rows that were not stored as JSON",
  read({ zone, by }, read, { operands: files }) {
    if (files.length === 0) read.mistakes.push(`<file...> must be given: ${ENDING_RULE}`);
    for (const file of files)
      if (!ENDINGS.test(file) || !existsSync(file) || !statSync(file).isFile())
        read.wrong(
          "file",
          file,
          `a file that exists and ends in .csv, .ndjson, .jsonl or .parquet (${ENDING_RULE})`,
        );
    const zoneId = zone === undefined ? null : (read.id("zone", zone, "a shield zone's number") ?? null);
    return { files, zoneId, actor: readActor(read, by) };
  },
  async run({ files, zoneId, actor }, io, readConfig) {
    const found: Imported = { rows: 0, stored: 0, known: 0, unreadable: 0, refused: 0, notes: [] };
    const sizes = files.map((file) => statSync(file).size);
    const all = Math.max(
      1,
      sizes.reduce((sum, size) => sum + size, 0),
    );
    await onStore(
      io,
      readConfig(),
      ({ config, database, archive, clock, onProgress }) =>
        withFiles(database, config, io, async (search, signal) => {
          const { db } = database;
          if (zoneId !== null) await findZones(db, config, String(zoneId));
          const zoneIds = await findZones(db, config, "all");
          const keyring = createPseudonymKeyring(config, database);
          const erasures = createErasureGuard(keyring.open);
          const deps = {
            database,
            archive,
            search,
            clock,
            erasures,
            zoneIds,
            retention: config.retention,
            partitions: createPartitionKeeper(database),
            openKey: keyring.open,
          };
          let bytes = 0;
          const draw = (read: number) => {
            bytes += read;
            onProgress(bytes / all, `${formatWhole(found.rows)} rows, ${formatWhole(found.stored)} stored`);
          };
          const onWait = () => void io.stderr.write("waiting: the archive is being written\n");
          const lease = { name: ARCHIVE_LEASE.name, waitMs: WAIT_MS, onWait };
          try {
            for (const file of files)
              await holdPatiently(
                database,
                lease,
                (held) =>
                  importFile(
                    deps,
                    { file, zone: zoneId, lease: held, found, onProgress: draw },
                    AbortSignal.any([signal, held.lost]),
                  ),
                signal,
              ).catch((thrown: unknown) => {
                throw describeFailure(file, found, thrown);
              });
          } finally {
            const { notes: _, ...counts } = found;
            const details = { files: files.map((file) => maskText(path.basename(file))), ...counts };
            const subject = zoneId === null ? "events" : `zone ${zoneId}`;
            if (found.rows > 0)
              await writeAuditEntry(db, { actor, action: "events.imported", subject, details });
          }
        }),
      { stopped: "stopped; the same command continues from here" },
    );
    return { facts: found, text: describe(found), isFailed: found.refused + found.unreadable > 0 };
  },
});

/** Names the file of a failure, and what was stored of it. */
function describeFailure(file: string, { rows, stored }: Imported, thrown: unknown): unknown {
  if (!(thrown instanceof CsvFileError || thrown instanceof DuckdbError)) return thrown;
  const done = `${many(rows, "row")} were read and ${many(stored, "event")} stored before`;
  return new Error(`${escapeText(file)} ${escapeText(thrown.message)}; ${done}`, { cause: thrown });
}

function describe({ rows, stored, known, refused, unreadable, notes }: Imported): string {
  const shown = notes.slice(0, MOST_SHOWN);
  const more = refused + unreadable - shown.length;
  return [
    `${many(rows, "row")}: ${formatWhole(stored)} stored, ${formatWhole(known)} stored before, ${formatWhole(refused)} refused, ${formatWhole(unreadable)} unreadable\n`,
    ...shown.map(({ file, line, reason }) => `  ${escapeText(file)}, line ${line}: ${reason}\n`),
    more > 0 ? `  and ${formatWhole(more)} more; --json lists a thousand\n` : "",
  ].join("");
}
