import { createReadStream } from "node:fs";
import {
  EXPORT_HEADER,
  EXPORT_NAMES,
  finishOcsfLine,
  mapColumnLines,
  mapExportLines,
  mapLines,
  toCsvLine,
  toNdjsonLine,
  ZONES_HEADER,
} from "#archive/rules/export-lines.ts";
import { maskAddress } from "#archive/rules/mask.ts";
import { asksMethod, type SearchPlan } from "#archive/rules/query/plan-search.ts";
import type { ZonesRequest } from "#archive/rules/query/read-search.ts";
import { type ColumnChoice, createColumns } from "#archive/rules/records/to-row.ts";
import {
  columnsOf,
  type ExportForm,
  exportEvents as toStatements,
} from "#archive/rules/sql/export-events.ts";
import { countBefore } from "#archive/rules/sql/find-rows.ts";
import type { ScratchFile } from "#db/archive/archive-reader.ts";
import { type ArchivedDay, readArchivedDays } from "#db/archive/archived-days.ts";
import { copyOpenRows } from "#db/archive/open-rows.ts";
import { inSearchView } from "#db/archive/search-condition.ts";
import type { ExportFormName } from "#model/kinds.ts";
import type { OcsfSettings } from "#model/ocsf.ts";
import type { EventKey } from "#model/waf-event.ts";
import { copyByMethod } from "./read-union.ts";
import type { SearchDeps } from "./searching.ts";

/** So many open rows are copied and written in some tens of milliseconds. */
const OPEN_ROWS = 12_000;
/** About one row group of a file: the next part is written while one is sent. */
const FILE_ROWS = 32_768;
const CHUNK_BYTES = 262_144;

/** The rest of an export: the events before `to`. */
interface Rest {
  readonly to: number;
  /** The last event that was exported, if others of its day may follow. */
  readonly after: EventKey | null;
  /** If the last part came from the file of the day: the number of its first row. */
  readonly endRow: number | null;
}

interface Part {
  /** Null if the part has no events. */
  readonly lines: ScratchFile | null;
  readonly rest: Rest | null;
}

/** Runs the work of one part. All parts but the first belong to an answer that has begun. */
export type RunPart = <T>(isFirst: boolean, work: (deps: SearchDeps) => Promise<T>) => Promise<T>;

interface Export extends SearchDeps {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly form: ExportForm;
  readonly signal: AbortSignal;
}

interface ExportOptions {
  readonly form: ExportForm;
  readonly signal: AbortSignal;
  /** Called after each part with the time from which on all events were yielded; epoch ms. */
  readonly onReached?: (from: number) => void;
}

/**
 * Yields all events that a search finds as lines of text, newest first; those of one millisecond by log id, the greatest
 * first. Each part is read on its own, so a slow reader holds neither a connection nor a snapshot, and days may move into
 * the archive meanwhile. The next part is written while one is sent. The export may include events that arrive meanwhile.
 */
export async function* exportEvents(
  runPart: RunPart,
  zoneId: number,
  plan: SearchPlan,
  { form, signal, onReached }: ExportOptions,
): AsyncGenerator<Buffer, void, undefined> {
  const begin = (rest: Rest | null, isFirst = false) => {
    if (rest === null) return null;
    const part = runPart(isFirst, (deps) => writePart({ ...deps, zoneId, plan, form, signal }, rest));
    // The part may fail while the one before is still being sent, before anything awaits it.
    part.catch(() => undefined);
    return part;
  };
  let next = begin({ to: plan.to, after: null, endRow: null }, true);
  try {
    while (next !== null) {
      const { lines, rest }: Part = await next;
      next = begin(rest);
      if (lines !== null) yield* readAndRemove(lines);
      onReached?.(rest?.to ?? plan.from);
    }
  } finally {
    await next?.then(({ lines }) => lines?.remove()).catch(() => undefined);
  }
}

export interface ExportText {
  readonly form: Exclude<ExportFormName, "parquet">;
  /** Null: the platform's columns. */
  readonly choice: ColumnChoice | null;
  /** Whether several zones were asked for, so that the platform's columns are followed by the zone. */
  readonly isZoned: boolean;
}

/** Returns the first line of an export; '' for a form without one. */
export function exportHead({ form, choice, isZoned }: ExportText): string {
  if (form !== "csv") return "";
  return choice !== null ? toCsvLine(choice.columns) : isZoned ? ZONES_HEADER : EXPORT_HEADER;
}

/** Yields the lines of an export behind its head, zone by zone, each as `exportEvents` does. */
export async function* exportZones(
  runPart: RunPart,
  { zoneIds, plan, isMasked }: ZonesRequest,
  {
    form,
    choice,
    isZoned,
    ocsf,
    signal,
    onReached,
  }: ExportText & Omit<ExportOptions, "form"> & { readonly ocsf: OcsfSettings },
): AsyncGenerator<string | Buffer, void, undefined> {
  const toText = form === "ndjson" ? toNdjsonLine : toCsvRow;
  for (const [index, zoneId] of zoneIds.entries()) {
    const run: RunPart = (isFirst, work) => runPart(isFirst && index === 0, work);
    // The share of one zone says nothing about the others.
    const options = { signal, ...(isZoned || onReached === undefined ? {} : { onReached }) };
    const read = (form: ExportForm) => exportEvents(run, zoneId, plan, { ...options, form });
    const zone = isZoned ? zoneId : null;
    if (form === "ocsf") yield* mapLines(read({ zoneId, ...ocsf }), (line) => finishOcsfLine(line, isMasked));
    else if (choice !== null)
      yield* mapColumnLines(read("event"), createColumns(choice, isMasked), { zoneId, form });
    // DuckDB writes the lines of which nothing is hidden, several times as fast.
    else if (form === "csv" && !isMasked) yield* read({ csv: { zone } });
    else yield* mapExportLines(read("json"), (row) => toText(isMasked ? mask(row) : row, zone));
  }
}

const IP_COLUMN = EXPORT_NAMES.indexOf("ip");

function mask(row: readonly string[]): string[] {
  return row.map((text, index) => (index === IP_COLUMN ? maskAddress(text) : text));
}

function toCsvRow(row: readonly string[], zone: number | null): string {
  return toCsvLine(zone === null ? row : [...row, String(zone)]);
}

async function* readAndRemove({ path, remove }: ScratchFile): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: CHUNK_BYTES })) yield chunk as Buffer;
  } finally {
    await remove();
  }
}

async function writePart(wanted: Export, rest: Rest): Promise<Part> {
  const copied = wanted.files.scratchFile();
  const lines = wanted.files.scratchFile();
  try {
    const found = await copyNext(wanted, rest, copied.path);
    const part =
      "day" in found
        ? await writeArchived(wanted, rest, found.day, lines)
        : await writeOpen(wanted, found, copied.path, lines);
    if (part.lines === null) await lines.remove();
    return part;
  } catch (thrown) {
    await lines.remove();
    throw thrown;
  } finally {
    await copied.remove();
  }
}

interface OpenPart {
  readonly from: number;
  readonly rows: number;
}

/**
 * Copies the newest rows that are left and still in Postgres. If an archive day that is left is newer, copies nothing
 * and returns that day.
 */
async function copyNext(
  wanted: Export,
  { to, after, endRow }: Rest,
  path: string,
): Promise<OpenPart | { readonly day: ArchivedDay }> {
  const { queries, zoneId, plan, form, signal } = wanted;
  const columns = columnsOf(form);
  if (asksMethod(plan)) {
    // The events are few, so one part holds all of them.
    const { copied: rows } = await copyByMethod(wanted, zoneId, plan, { path, columns, signal });
    return { from: plan.from, rows };
  }
  return inSearchView(queries, signal, async (tx, client) => {
    const day = (await readArchivedDays(tx, zoneId, { from: plan.from, to })).at(-1);
    if (day !== undefined && day.to >= to) return { day };
    if (endRow !== null) throw new Error("a day left the archive during its export");
    const from = Math.max(day?.to ?? plan.from, plan.from);
    const part = { after, limit: OPEN_ROWS };
    const rows = await copyOpenRows(client, plan, [{ zoneIds: [zoneId], spans: [{ from, to }] }], {
      columns,
      path,
      part,
    });
    return { from, rows };
  });
}

async function writeOpen(
  { files, plan, form, signal }: Export,
  { from, rows }: OpenPart,
  path: string,
  lines: ScratchFile,
): Promise<Part> {
  const older = from > plan.from ? { to: from, after: null, endRow: null } : null;
  if (rows === 0) return { lines: null, rest: older };
  const source = { openRows: { path, columns: columnsOf(form) } };
  const [last = "[]"] = await files.read(
    [],
    toStatements(source, plan, { form, target: lines.path }),
    signal,
  );
  if (rows < OPEN_ROWS) return { lines, rest: older };
  const [occurredAt, logId] = JSON.parse(last) as [number, string];
  return { lines, rest: { to: occurredAt + 1, after: { occurredAt, logId }, endRow: null } };
}

async function writeArchived(
  { files, plan, form, signal }: Export,
  { to, after, endRow }: Rest,
  day: ArchivedDay,
  lines: ScratchFile,
): Promise<Part> {
  const file = files.eventsFileOf(day.events);
  let end = endRow ?? day.rows;
  if (after !== null) {
    const [row = "[0]"] = await files.read([day.events], [countBefore(file.path, after)], signal);
    [end] = JSON.parse(row) as [number];
  }
  const first = Math.max(0, end - FILE_ROWS);
  const target = { form, target: lines.path };
  await files.read([day.events], toStatements({ file, first, end }, plan, target), signal);
  const older = day.from > plan.from ? { to: day.from, after: null, endRow: null } : null;
  return { lines, rest: first > 0 ? { to, after: null, endRow: first } : older };
}

/** The parts of a plan that an audit entry is about. */
export type ExportPlan = Pick<SearchPlan, "from" | "to" | "clauses" | "methodClauses">;

interface Exported {
  readonly plan: ExportPlan;
  readonly isMasked: boolean;
}

/**
 * Returns the audit entry of an export: the actor, the zone and the time range. Of the filters the entry has only the
 * fields: their texts may be addresses, and the entry outlives every erasure.
 */
export function describeExport(actor: string, zoneId: number, { plan, isMasked }: Exported) {
  const details = {
    from: new Date(plan.from).toISOString(),
    to: new Date(plan.to).toISOString(),
    filteredBy: [
      ...new Set(plan.clauses.flatMap(({ columns }) => columns)),
      ...(plan.methodClauses.length > 0 ? ["method"] : []),
    ],
    isMasked,
  };
  return { actor, action: "events.exported", subject: `zone ${zoneId}`, details };
}
