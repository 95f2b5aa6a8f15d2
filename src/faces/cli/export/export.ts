import { createWriteStream, existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import path from "node:path";
import { Readable, Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip, createZstdCompress } from "node:zlib";
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { formatBytes } from "#lib/disk-space.ts";
import { escapeText } from "#lib/escape-text.ts";
import { many } from "#lib/format.ts";
import { createProgressLine } from "#lib/progress-bar.ts";
import { publishFile } from "#lib/publish-file.ts";
import { EXPORT_FORMS } from "#model/kinds.ts";
import { describeExport } from "#operations/search/describe-export.ts";
import { exportEvents } from "#operations/search/export-events.ts";
import { EXPORT_HEADER, mapExportLines, mapLines, toNdjsonLine } from "#stages/archive/csv/export-lines.ts";
import { finishOcsfLine } from "#stages/archive/ocsf/finish-ocsf-line.ts";
import { createProcessIo, writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { addWindowOptions, readRequest, type WindowFlags } from "../edge/read-search.ts";
import { readActor } from "../options/read-actor.ts";
import { requireZones } from "../options/require-known.ts";
import { planAsked, requireKept } from "../search/plan-asked.ts";
import { withSearch } from "../search/with-search.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { SUMMARIES } from "../summaries.ts";
import { checkWholeDays, exportDays } from "./export-days.ts";
import { createExportProgress } from "./export-progress.ts";

const HELP = `
The command writes every kept event that matches, newest first: the database and the files of the archive. The columns are
those of edge events export. The ending of --out chooses the form: .csv, or .ndjson with one JSON object per line; a
further .gz or .zst compresses. A file gets its name when it is complete. An existing file is never replaced. Without --out
CSV is written to standard output. In CSV, a cell that a spreadsheet would run as a formula begins with an apostrophe. The
audit trail gets an entry with the zone, the span and the filtered fields. Exit code 1 if the export is incomplete. The
progress line counts the written events. It knows their total if there are no filters.

--format ocsf writes one HTTP Activity of OCSF 1.8 per line, without records; search --format ocsf includes them (docs/ocsf.md).

--format parquet copies the archive's files of whole days, records included, into the new folder --out: a day, a month, a
year. Each file is compared with its hash. archive verify --offline checks the folder, and other engines read it.

Examples:
  npm run -s longwatch -- export --zone 101 --from -30d --out events.csv.gz
  npm run -s longwatch -- export --zone 101 --from 2026-11-01 --to 2026-11-08 --filter action:eq:block --out week.ndjson.zst
  npm run -s longwatch -- export --zone 101 --from -1h --json | jq .url
  npm run -s longwatch -- export --zone 101 --from 2026-10-01 --to 2026-11-01 --format parquet --out october`;

const COMPRESSORS = { ".gz": createGzip, ".zst": createZstdCompress } as const;
const FORMS: Readonly<Record<string, "csv" | "ndjson">> = {
  ".csv": "csv",
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
};
const FORM_WORDS = `${EXPORT_FORMS.slice(0, -1).join(", ")} or ${EXPORT_FORMS.at(-1)}`;
const OUT_RULE = "a new file that ends in .csv or .ndjson, or in one of these and .gz or .zst";

interface Flags extends WindowFlags {
  readonly out?: string;
  readonly by?: string;
  readonly json?: true;
  readonly format?: string;
}

interface Target {
  readonly file: string;
  readonly form: "csv" | "ndjson";
  readonly compression: keyof typeof COMPRESSORS | null;
}

/** `longwatch export`: writes all kept events that match, as CSV or NDJSON, or copies the files of whole archive days. */
export function exportCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return addWindowOptions(storeCommand("export", SUMMARIES.export, HELP, io), true)
    .option("--out <file>", "write this file; - for standard output (default)")
    .option("--by <name>", "name of the person who does it (default: the user who runs the command)")
    .option("--json", "write NDJSON: one JSON object per line")
    .option("--format <format>", `${FORM_WORDS} (default: what --out ends in)`)
    .action(
      storeAction<Flags>(io, async ({ out, by, json, format, ...flags }, read) => {
        const zoneId = read.id("zone", flags.zone, "a shield zone's number") ?? 0;
        const request = await readRequest(flags, {}, { read, io });
        const plan = planAsked(read, request, { kind: "export", flags });
        const isParquet = format === "parquet";
        const form = json === true ? "ndjson" : format;
        if (json === true && format !== undefined) read.wrong("format", format, "left out beside --json");
        if (form !== undefined && !EXPORT_FORMS.some((one) => one === form))
          read.wrong("format", format, FORM_WORDS);
        const target = isParquet ? null : readTarget(read, out, form);
        const folder = isParquet ? readFolder(read, out) : null;
        if (isParquet && plan !== undefined) checkWholeDays(read, plan, flags);
        const actor = readActor(read, by);
        read.finish();
        if (plan === undefined) return;
        const config = readConfig();
        requireKept(plan, config, io.clock());
        if (folder !== null) return exportDays(io, config, { zoneId, plan, target: folder, actor });
        await withSearch(io, config, async (deps, { db }, signal) => {
          await requireZones(db, config, [zoneId]);
          await writeAuditEntry(db, describeExport(actor, zoneId, { plan, isMasked: false }));
          const isCsv = target === null ? form === undefined || form === "csv" : target.form === "csv";
          const isOcsf = form === "ocsf";
          const lineForm = isCsv ? "csv" : isOcsf ? { zoneId, vendor: config.platformVendor } : "json";
          const line = createProgressLine(io.stderr);
          const progress = createExportProgress({
            zoneId,
            plan,
            form: isCsv ? "csv" : "json",
            // A line that is redrawn would be among the events on the screen.
            line: target !== null || io.stdout.isTTY !== true ? line : null,
            clock: () => performance.now(),
          });
          const counting = new AbortController();
          const total = progress.findTotal(deps, AbortSignal.any([signal, counting.signal]));
          const { onReached } = progress;
          const lines = progress.watch(
            exportEvents((_, work) => work(deps), zoneId, plan, { form: lineForm, signal, onReached }),
          );
          const text = isCsv
            ? withHeader(lines)
            : isOcsf
              ? mapLines(lines, (line) => finishOcsfLine(line))
              : mapExportLines(lines, toNdjsonLine);
          try {
            if (target === null) for await (const chunk of text) await writeOut(io.stdout, chunk);
            else {
              const bytes = await writeFile(target, text);
              line.clear();
              const size = `${formatBytes(bytes)}${target.compression === null ? "" : " before compression"}`;
              const events = many(progress.events(), "event");
              io.stderr.write(`wrote ${escapeText(target.file)}: ${events}, ${size}\n`);
            }
          } finally {
            counting.abort();
            await total;
            line.clear();
          }
        });
      }),
    );
}

function readFolder(read: FlagReader, out: string | undefined): string | null {
  if (out === undefined || out === "-" || existsSync(out)) {
    read.wrong("out", out, "a folder that does not exist yet");
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
  if (file.endsWith(".parquet"))
    read.wrong("out", out, `${OUT_RULE}; for Parquet give --format parquet, and --out with a new folder`);
  else if (form === undefined || existsSync(file)) read.wrong("out", out, OUT_RULE);
  else if (wanted !== undefined && ending !== form) read.wrong("out", out, `a file that ends in .${ending}`);
  return { file, form: form ?? "csv", compression: compression ?? null };
}

async function* withHeader(lines: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  // The first part decides whether there is an answer at all.
  let isFirst = true;
  for await (const chunk of lines) {
    if (isFirst) yield Buffer.from(EXPORT_HEADER);
    isFirst = false;
    yield chunk;
  }
  if (isFirst) yield Buffer.from(EXPORT_HEADER);
}

/** Returns the number of bytes before compression. After a failure there is no file. */
async function writeFile(
  { file, compression }: Target,
  text: AsyncIterable<string | Buffer>,
): Promise<number> {
  const temporary = `${file}.${process.pid}.tmp`;
  let bytes = 0;
  const counter = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      done(null, chunk);
    },
  });
  const compressors = compression === null ? [] : [COMPRESSORS[compression]()];
  try {
    await pipeline([
      Readable.from(text, { objectMode: false }),
      counter,
      ...compressors,
      createWriteStream(temporary, { flags: "wx", mode: 0o600 }),
    ]);
    await publishFile(temporary, file);
    return bytes;
  } catch (thrown) {
    await rm(temporary, { force: true });
    throw thrown;
  }
}
