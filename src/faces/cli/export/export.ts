/** The command that exports events or whole days. */

import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import type { Command } from "commander";
import { createArchiveStore } from "#app/open-archive-store.ts";
import { copyDays } from "#archive/operations/copy-days.ts";

import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import { describeExport, exportHead } from "#archive/search/export-events.ts";
import { searchEvents } from "#archive/search/search-events.ts";
import type { Config, RemoteService } from "#config/config.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { temporaryFolder } from "#jobs/archive/archive-store.ts";
import { copyOpenDay } from "#jobs/archive/write-day.ts";
import { formatBytes } from "#lib/disk.ts";
import { formatWhole, many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { EXPORT_FORMS } from "#model/kinds.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { createProcessIo } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import {
  addWindowOptions,
  type ColumnFlags,
  readColumnFlags,
  readRequest,
  type WindowFlags,
} from "../edge/read-search.ts";
import { askRemotely, readRemotely } from "../operations/ask-remotely.ts";
import { allowRemote, pickAsk } from "../operations/remote-commands.ts";
import { findChosen, readActor, readAfter, readZoneChoice, requireZones } from "../options/read-options.ts";
import { planAsked, requireKept, toNativeRequest } from "../search/find-pages.ts";
import { onStore } from "../store/define-task.ts";
import { untilStopped } from "../store/open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import {
  COMPRESSORS,
  exportHere,
  exportOneFile,
  type ParquetExport,
  saveExport,
  type Target,
  type WantedExport,
} from "./save-export.ts";

const HELP = `
The command writes every kept event that matches, newest first: the database and the files of the archive. The columns are
those of edge events export, or those that --columns names (docs/api.md); of several zones, the last column is the zone. The ending of --out chooses the form: .csv, or
.ndjson with one JSON object per line; a further .gz or .zst compresses. A file gets its name when it is complete. An
existing file is never replaced. Without --out CSV is written to standard output. In CSV, a cell that a spreadsheet would run as a formula begins with an apostrophe. The
audit trail gets an entry for each zone, with the span and the filtered fields. Exit code 1 if the export is incomplete. The
progress line counts the written events. It knows their total if there are no filters.

--format ocsf writes one HTTP Activity of OCSF 1.8 per line, without records; search --format ocsf includes them (docs/ocsf.md).

--format parquet copies the archive's files of whole days, records included, into the new folder --out: a day, a month, a
year. Each file is compared with its hash. A day that is not in the archive yet, such as yesterday, is written from the
database. Its statement and the command say which hours are proven and which are not. archive verify --offline checks the
folder, and other engines read it. A service elsewhere (--url) has no such files to copy; its key needs the role exporter.
If --out ends in .parquet, the events that match, of any span, are written into this one file: unsorted, and without records.

Examples:
  npm run -s longwatch -- export --zone 101 --from -30d --out events.csv.gz
  npm run -s longwatch -- export --zone 101 --from 2026-11-01 --to 2026-11-08 --filter action:eq:block --out week.ndjson.zst
  npm run -s longwatch -- export --zone all --from -1h --json | jq .url
  npm run -s longwatch -- export --zone 101 --from 2026-10-01 --to 2026-11-01 --format parquet --out october
  npm run -s longwatch -- export --zone 101 --from -7d --filter action:eq:block --out blocked.parquet`;

const FORMS: Readonly<Record<string, "csv" | "ndjson">> = {
  ".csv": "csv",
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
};
const FORM_WORDS = `${EXPORT_FORMS.slice(0, -1).join(", ")} or ${EXPORT_FORMS.at(-1)}`;
const OUT_RULE = "a new file that ends in .csv or .ndjson, in one of these and .gz or .zst, or in .parquet";

interface Flags extends WindowFlags, ColumnFlags {
  readonly out?: string;
  readonly by?: string;
  readonly json?: true;
  readonly format?: string;
}

/** `longwatch export`: writes all kept events that match, as CSV or NDJSON, or copies the files of whole archive days. */
export function exportCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return addWindowOptions(allowRemote(storeCommand("export", HELP, io)), true)
    .option("--out <file>", "write this file; - for standard output (default)")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "write NDJSON: one JSON object per line")
    .option("--format <format>", `${FORM_WORDS} (default: what --out ends in)`)
    .action(
      storeAction<Flags>(io, async ({ out, by, json, format, columns, timeZone, ...flags }, read) => {
        const zones = readZoneChoice(read, flags);
        const request = await readRequest(flags, {}, { read, io });
        const plan = planAsked(read, request, { kind: "export", flags });
        const isFile = out?.endsWith(".parquet") === true;
        const isParquet = format === "parquet" || (isFile && format === undefined && json !== true);
        const form = json === true ? "ndjson" : format;
        if (json === true && format !== undefined) read.wrong("format", format, "left out beside --json");
        if (form !== undefined && !EXPORT_FORMS.some((one) => one === form))
          read.wrong("format", format, FORM_WORDS);
        const target = isParquet ? null : readTarget(read, out, form);
        const parquet = isParquet ? readParquetTarget(read, out) : null;
        const beside = isParquet || form === "ocsf" ? `--format ${form ?? "parquet"}` : null;
        if (isParquet && !isFile && (zones.account !== undefined || !/^\d*$/.test(zones.text)))
          read.wrong("zone", flags.zone, "one zone for a folder; a file that ends in .parquet takes several");
        const choice = readColumnFlags(read, { columns, timeZone }, { isExport: true, beside });
        const config = readAfter(read, readConfig);
        const actor = readActor(read, by, config);
        if (isParquet && !isFile && config.remote === null && plan !== undefined)
          checkWholeDays(read, plan, { out, ...flags });
        if (isParquet && config.remote !== null)
          read.wrong(
            "format",
            "parquet",
            "csv, ndjson or ocsf for a service elsewhere: files are copied on its machine",
          );
        read.finish();
        if (plan === undefined) return;
        const zone = await findChosen(pickAsk(config, io, null), zones);
        const isZoned = !/^\d+$/.test(zone);
        const wanted: WantedExport = { zone, isZoned, plan, target, form: pickForm(form, target), choice };
        if (config.remote !== null) {
          return exportElsewhere(io, config.remote, wanted, toNativeRequest(request, flags) as object);
        }
        requireKept(plan, config, io.clock());
        if (parquet !== null)
          return (isFile ? exportOneFile : exportDays)(io, config, { zone, plan, target: parquet, actor });
        await exportHere(io, config, wanted, actor);
      }),
    );
}

function pickForm(asked: string | undefined, target: Target | null): WantedExport["form"] {
  const form = asked ?? target?.form ?? "csv";
  return form === "ocsf" || form === "ndjson" ? form : "csv";
}

function readParquetTarget(read: FlagReader, out: string | undefined): string | null {
  if (out === undefined || out === "-" || existsSync(out)) {
    read.wrong("out", out, "a folder that does not exist yet, or a new file that ends in .parquet");
    return null;
  }
  return path.resolve(out);
}

function readTarget(read: FlagReader, out: string | undefined, wanted: string | undefined): Target | null {
  if (out === undefined || out === "-") return null;
  const file = path.resolve(out);
  const compression = Object.keys(COMPRESSORS).find((ending) => file.endsWith(ending)) as
    | keyof typeof COMPRESSORS
    | undefined;
  const ending = wanted === "ocsf" ? "ndjson" : wanted;
  const form = FORMS[path.extname(compression === undefined ? file : file.slice(0, -compression.length))];
  if (form === undefined || existsSync(file)) read.wrong("out", out, OUT_RULE);
  else if (wanted !== undefined && ending !== form) read.wrong("out", out, `a file that ends in .${ending}`);
  return { file, form: form ?? "csv", compression: compression ?? null };
}

/** Notes what keeps files from being copied: a span that cuts days, and filters. */
function checkWholeDays(
  read: FlagReader,
  { from, to, clauses, methodClauses }: SearchPlan,
  given: { readonly from?: string; readonly to?: string; readonly out: string | undefined },
): void {
  const rule =
    "the start of a UTC day, because whole files are copied; for other spans write .csv, .ndjson or .parquet";
  if (from % DAY_MS !== 0) read.wrong("from", given.from, rule);
  if (to % DAY_MS !== 0) read.wrong("to", given.to ?? "now", rule);
  if (clauses.length + methodClauses.length > 0)
    read.wrong(
      "out",
      given.out,
      "a new file that ends in .parquet beside filters, because a folder gets whole files",
    );
}

/** Copies the archive's files of whole days into a new folder, and days that are not in the archive yet from Postgres. */
async function exportDays(
  io: StoreIo,
  config: Config,
  { zone, plan, target, actor }: ParquetExport,
): Promise<void> {
  const zoneId = Number(zone);
  const copied = await onStore(io, config, async ({ database, archive: { storage }, onProgress, signal }) => {
    const { db } = database;
    await requireZones(db, config, [zoneId]);
    await writeAuditEntry(db, describeExport(actor, zoneId, { plan, isMasked: false }));
    return copyDays({ db, storage }, zoneId, plan, {
      target,
      signal,
      async writeOpen(day, folder) {
        const store = createArchiveStore(createFolderStorage(folder));
        try {
          onProgress(0, `${day} from the database`);
          return await copyOpenDay({ ...store, database, signal }, { zoneId, day }, io.clock());
        } finally {
          await store.duckdb.close();
          await rm(temporaryFolder(folder), { recursive: true, force: true });
        }
      },
      onFile: (done, all) =>
        onProgress(
          done.bytes / all.bytes,
          `${formatWhole(done.events)} of ${many(all.events, "event")}, ${formatWhole(done.files)} of ${many(all.files, "file")}`,
        ),
    });
  });
  const { days, files, events, bytes, provisional } = copied;
  // Now the progress line is gone.
  io.stderr.write(
    `wrote ${escapeText(target)}: ${many(days, "day")}, ${many(events, "event")}, ${many(files, "file")}, ${formatBytes(bytes)}\n`,
  );
  for (const sentence of provisional) io.stderr.write(`${sentence}.\n`);
}

/** Exports the events of a service elsewhere. `request` is what its API takes. */
function exportElsewhere(
  io: StoreIo,
  remote: RemoteService,
  wanted: WantedExport,
  request: object,
): Promise<void> {
  const { zone, form, choice } = wanted;
  const path = `/api/v1/zones/${zone}/events/export`;
  const [type, begins] = [form === "csv" ? "text/csv" : "application/x-ndjson", exportHead(wanted)];
  return untilStopped(io, (signal) => {
    const source = {
      read: () =>
        readRemotely(remote, { path, body: { ...request, format: form, ...choice }, signal, type, begins }),
      async countUnfiltered(stopped: AbortSignal) {
        const input = { ...request, zone, page: 0, pageSize: 1 };
        const { total } = (await askRemotely(remote, stopped)(searchEvents, input)) as { total: number };
        return total;
      },
    };
    return saveExport(io, wanted, source, signal);
  });
}
