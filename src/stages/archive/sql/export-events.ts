import { toFileColumnSql } from "#model/archive-layout.ts";
import { SEARCH_COLUMNS } from "#model/fields.ts";
import { DIMENSIONS } from "#model/kinds.ts";
import type { OcsfSettings } from "#model/ocsf.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import { type EventsFile, type OpenRows, prepareSource, quote, readFiles } from "./event-source.ts";
import { toOcsfLine } from "./ocsf-line.ts";
import { duck, type Piece, raw } from "./piece.ts";
import { toClauses, toTimeCondition } from "./to-condition.ts";

/** The columns of an exported event, in the order of the export. */
export const EXPORT_COLUMNS = ["occurred_at", "log_id", ...DIMENSIONS.map((name) => SEARCH_COLUMNS[name])];
/** The columns that lines of OCSF are made of. */
const OCSF_COLUMNS = [...EXPORT_COLUMNS, SEARCH_COLUMNS.message, "method", "request_id"];

/** The rows [first, end) of a file, or the rows of a CSV file that pass already. */
export type ExportSource =
  | { readonly file: EventsFile; readonly first: number; readonly end: number }
  | { readonly openRows: OpenRows };

/**
 * `csv` is the line that `toCsvLine` makes; `json` is an array of texts, for lines that are made elsewhere; an object asks for
 * the objects of `toOcsf`.
 */
export type ExportForm = "csv" | "json" | (OcsfSettings & { readonly zoneId: number });

/** Returns the columns that the lines of a form are made of. */
export function columnsOf(form: ExportForm): readonly string[] {
  return typeof form === "string" ? EXPORT_COLUMNS : OCSF_COLUMNS;
}

/**
 * Returns the statements that write one part of an export, newest first, into the file `target`. The last one returns the
 * time and log id of the part's last event, if there is one.
 */
export function exportEvents(
  source: ExportSource,
  plan: Pick<SearchPlan, "from" | "to" | "clauses">,
  { form, target }: { form: ExportForm; target: string },
): Piece[] {
  const line = toLine(form);
  const options = `format csv, header false, quote '', escape '', delimiter '\u0001'`;
  const write = (from: Piece, order: string) =>
    duck`copy (select ${line} as line from ${from} order by ${raw(order)}) to ${raw(quote(target))} (${raw(options)})`;
  if ("openRows" in source) {
    return [
      ...prepareSource({ files: [], openRows: source.openRows }),
      write(raw("open_rows"), "occurred_at desc, log_id desc"),
      raw(
        "select json_array(epoch_ms(occurred_at), log_id) from open_rows order by occurred_at, log_id limit 1",
      ),
    ];
  }
  const { file, first, end } = source;
  return [
    write(
      duck`${readRows(file)} where file_row_number >= ${first} and file_row_number < ${end}
        and ${toTimeCondition(plan)} and ${toClauses(plan, file.format)}`,
      "file_row_number desc",
    ),
  ];
}

/** A file of an earlier version has neither method nor request id. */
function readRows(file: EventsFile): Piece {
  const lacking = ["method", "request_id"].filter((name) => toFileColumnSql(name, file.format) !== name);
  if (lacking.length === 0) return readFiles([file]);
  const columns = lacking.map((name) => `${toFileColumnSql(name, file.format)} as ${name}`);
  return duck`(select *, file_row_number, ${raw(columns.join(", "))} from ${readFiles([file])})`;
}

function toLine(form: ExportForm): Piece {
  if (form === "csv") return raw(CSV_LINE);
  return form === "json" ? raw(`json_array(${CELLS.join(", ")})`) : toOcsfLine(form);
}

/** The texts of an exported event. */
const CELLS = [
  "epoch_ms(occurred_at)::varchar",
  ...EXPORT_COLUMNS.slice(1).map((column) => `coalesce(${column}, '')`),
];

/** Control characters except tab, line feed and carriage return, and bidirectional controls: those of `escape-controls.ts`. */
const CONTROL = String.raw`\x{1}-\x{8}\x{b}\x{c}\x{e}-\x{1f}\x{7f}-\x{9f}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}`;
/** Matches a character that begins a formula in a spreadsheet, or that a spreadsheet skips before one. As in `csv-line.ts`. */
const FORMULA = String.raw`[=+\-@\t\r\n\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]`;
/** Very few texts match: only these are looked at character by character. */
const ESCAPED = String.raw`\\u|[${CONTROL}]`;
/** A line that matches may have a cell that needs more than quotes around a comma. */
const UNUSUAL = String.raw`(?:^|,)${FORMULA}|["\r\n]|${ESCAPED}`;

const CSV_LINE = csvLine();

/**
 * Most lines need nothing but quotes around a comma. Of each other line, one expression examines all cells, because DuckDB
 * takes some 3 ms to prepare the expression.
 */
function csvLine(): string {
  const texts = CELLS.join(", ");
  const quick = CELLS.map(
    (text) => `case when contains(${text}, ',') then '"' || ${text} || '"' else ${text} end`,
  );
  const examined = `array_to_string(list_transform([${texts}], lambda cell: ${toCell("cell")}), ',')`;
  return `case when regexp_matches(concat_ws(',', ${texts}), '${UNUSUAL}') then ${examined} || '\r'
    else concat(${quick.join(", ',', ")}, '\r') end`;
}

function toCell(text: string): string {
  const marked = `regexp_replace(${text}, '\\\\(u[0-9a-fA-F]{4})', '\\\\u005c\\1', 'g')`;
  const escaped = `case when regexp_matches(${text}, '${ESCAPED}') then
    array_to_string(list_transform(regexp_extract_all(${marked}, '(?s).'), lambda c:
      case when regexp_matches(c, '[${CONTROL}]') then printf('\\u%04x', unicode(c)) else c end), '') else ${text} end`;
  const safe = `(case when regexp_matches(${text}, '^${FORMULA}') then '''' else '' end) || (${escaped})`;
  const quoted = `'"' || replace(${safe}, '"', '""') || '"'`;
  return `case when regexp_matches(${text}, '[",\\r\\n]') then ${quoted} else ${safe} end`;
}
