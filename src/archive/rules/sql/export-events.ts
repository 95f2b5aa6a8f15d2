/** Exports events of archive files. */

import { type ActionStates, toActionWordSql } from "#model/action-class.ts";
import { EVENT_FIELD_IDS, EVENT_FILE_COLUMNS, toFileColumnSql } from "#model/archive-layout.ts";
import { SEARCH_COLUMNS } from "#model/fields.ts";
import { DIMENSIONS } from "#model/kinds.ts";
import {
  ADDRESS,
  HTTP_ACTIVITY,
  HTTP_PROFILE,
  METHODS,
  NETWORK_NUMBER,
  OBSERVED,
  OCSF_VERSION,
  type OcsfSettings,
  OTHER,
  OUTCOMES,
  PRODUCT,
  UNKNOWN,
} from "#model/ocsf.ts";
import { toUrlPartInDuckdb } from "#model/record-parts.ts";
import { EVENT_TEXTS } from "#model/waf-event.ts";
import type { SearchPlan } from "../query/plan-search.ts";
import {
  type EventSource,
  type EventsFile,
  type OpenRows,
  prepareSource,
  quote,
  readFiles,
  selectEvents,
} from "./event-source.ts";
import { bound, duck, type Piece, raw, toClauses, toTimeCondition } from "./to-condition.ts";

/** The columns of an exported event, in the order of the export. */
export const EXPORT_COLUMNS = ["occurred_at", "log_id", ...DIMENSIONS.map((name) => SEARCH_COLUMNS[name])];
/** The columns that lines of OCSF are made of. */
const OCSF_COLUMNS = [...EXPORT_COLUMNS, SEARCH_COLUMNS.message, "method", "request_id"];

/** The rows [first, end) of a file, or the rows of a CSV file that pass already. */
type ExportSource =
  | { readonly file: EventsFile; readonly first: number; readonly end: number }
  | { readonly openRows: OpenRows };

/**
 * `csv` is the line that `toCsvLine` makes, with `zone` as its last cell if that is not null; `json` is an array of texts, for lines that are made elsewhere; `event` is the array that
 * `toArchivedEvent` reads, behind its time; an object asks for the objects of `toOcsf`.
 */
export type ExportForm =
  | "json"
  | "event"
  | { readonly csv: { readonly zone: number | null } }
  | (OcsfSettings & { readonly zoneId: number });

/** Returns the columns that the lines of a form are made of. */
export function columnsOf(form: ExportForm): readonly string[] {
  if (form === "event") return ["occurred_at", ...EVENT_TEXTS];
  return form === "json" || "csv" in form ? EXPORT_COLUMNS : OCSF_COLUMNS;
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
  // With another delimiter than the default, DuckDB takes twice as long to write a line.
  const options = "format csv, header false, quote '', escape ''";
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
  if (typeof form !== "string") return "csv" in form ? raw(toCsvSql(form.csv.zone)) : toOcsfLine(form);
  return raw(`json_array(${toCells(columnsOf(form)).join(", ")})`);
}

/** Returns the texts of an exported event. The first column is its time. */
function toCells(columns: readonly string[]): string[] {
  const texts = columns.slice(1).map((column) => `coalesce(${column}, '')`);
  return ["epoch_ms(occurred_at)::varchar", ...texts];
}

const CELLS = toCells(EXPORT_COLUMNS);

/** Control characters except tab, line feed and carriage return, and bidirectional controls: those of `export-lines.ts`. */
const CONTROL = String.raw`\x{1}-\x{8}\x{b}\x{c}\x{e}-\x{1f}\x{7f}-\x{9f}\x{61c}\x{200e}\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}`;
/** Matches a character that begins a formula in a spreadsheet, or that a spreadsheet skips before one. As in `export-lines.ts`. */
const FORMULA = String.raw`[=+\-@\t\r\n\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]`;
/** Very few texts match: only these are looked at character by character. */
const ESCAPED = String.raw`\\u|[${CONTROL}]`;
/** A line that matches may have a cell that needs more than quotes around a comma. */
const UNUSUAL = String.raw`(?:^|,)${FORMULA}|["\r\n]|${ESCAPED}`;

/**
 * Most lines need nothing but quotes around a comma. Of each other line, one expression examines all cells, because DuckDB
 * takes some 3 ms to prepare the expression.
 */
function toCsvSql(zone: number | null): string {
  const end = zone === null ? "\r" : `,${zone}\r`;
  const texts = CELLS.join(", ");
  const quick = CELLS.map(
    (text) => `case when contains(${text}, ',') then '"' || ${text} || '"' else ${text} end`,
  );
  const examined = `array_to_string(list_transform([${texts}], lambda cell: ${toCell("cell")}), ',')`;
  return `case when regexp_matches(concat_ws(',', ${texts}), '${UNUSUAL}') then ${examined} || '${end}'
    else concat(${quick.join(", ',', ")}, '${end}') end`;
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

/** The columns of an exported file: those of the archive's event files. */
export const PARQUET_COLUMNS = EVENT_FILE_COLUMNS.map(({ name }) => name);

/** Returns the statements that write all events that a search finds into a Parquet file, unsorted, and return their number. No value is null. */
export function exportParquet(
  source: EventSource,
  plan: Pick<SearchPlan, "from" | "to" | "clauses">,
  target: string,
): Piece[] {
  const events = selectEvents(source, plan, PARQUET_COLUMNS);
  const options = `format parquet, parquet_version v2, compression zstd, compression_level 3, row_group_size 32768,
    ${EVENT_FIELD_IDS}`;
  return [
    ...prepareSource(source),
    duck`copy (${events}) to ${raw(quote(target))} (${raw(options)})`,
    duck`select count(*)::varchar from ${readFiles([target])}`,
  ];
}

/** Returns SQL for a text that is written if a column is known, and for '' otherwise. */
const ifKnown = (column: string, text: string) => `case when ${column} <> '' then ${text} else '' end`;
/** Returns SQL for a member behind others, of a column that may be unknown. */
const member = (name: string, column: string) => ifKnown(column, `',"${name}":' || to_json(${column})`);

const { class_uid: CLASS, category_uid: CATEGORY } = HTTP_ACTIVITY;
/** Nearly all actions are one of the platform's own words, whose state no setting changes. */
function toOutcome({ toSql }: ActionStates): string {
  const given = ([action, disposition]: readonly [number, number]) =>
    `then ',"action_id":${action},"disposition_id":${disposition}'`;
  const observed = OBSERVED.words.map((word) => `'${word}'`).join(", ");
  return ifKnown(
    "action",
    `case action when 'block' ${given(OUTCOMES.blocked)} when 'challenge' ${given(OUTCOMES.challenged)}
      when 'log' ${given(OBSERVED.outcome)} else case ${toSql("action")}
      when 'blocked' ${given(OUTCOMES.blocked)} when 'challenged' ${given(OUTCOMES.challenged)}
      when 'logged' then case when ${toActionWordSql("action")} in (${observed}) ${given(OBSERVED.outcome)}
        else ',"action_id":${OUTCOMES.logged[0]},"disposition_id":${OUTCOMES.logged[1]}' end
      else concat(',"action_id":${OTHER},"action":', to_json(action), ',"disposition_id":${OTHER},"disposition":', to_json(action)) end end`,
  );
}

const SOURCE = [
  `case when regexp_matches(ip, '${ADDRESS}') then '"ip":"' || ip || '"'
    else '"name":' || to_json(coalesce(nullif(ip, ''), '${UNKNOWN}')) end`,
  ifKnown("country", `',"location":{"country":' || to_json(country) || '}'`),
  ifKnown(
    "asn",
    `',"autonomous_system":{' || case when regexp_matches(asn, '${NETWORK_NUMBER}') then '"number":' || asn
      else '"name":' || to_json(asn) end || '}'`,
  ),
];

const [HOST, PATH] = [toUrlPartInDuckdb("host", "url"), toUrlPartInDuckdb("path", "url")];
const QUERY = String.raw`regexp_extract(url, '^[^?#]*\?([^#]*)', 1)`;
const URL = ifKnown(
  "url",
  `concat('"url":{"url_string":', to_json(url), ',"path":', to_json(${PATH}), ${member("hostname", HOST)},
    ${member("query_string", QUERY)}, '}')`,
);
/** The members of the request, with a comma behind each. */
const REQUEST = [
  ifKnown("request_id", `'"uid":' || to_json(request_id) || ','`),
  `case when method in (${[...METHODS.keys()].map((name) => `'${name}'`).join(", ")}) then '"http_method":"' || method || '",' else '' end`,
  ifKnown("ua", `'"user_agent":' || to_json(ua) || ','`),
  ifKnown("url", `${URL} || ','`),
];
const ACTIVITY = `case ${[...METHODS].map(([name, id]) => `when method = '${name}' then ${id}`).join(" ")}
  when method <> '' then ${OTHER} else 0 end`;
const ACTIVITY_NAME = `case when ${ACTIVITY} = ${OTHER} then ',"activity_name":' || to_json(method) else '' end`;

const FINGERPRINT = ifKnown(
  "ja4",
  `',"ja4_fingerprint_list":[{"type_id":1,"value":' || to_json(ja4) || '}]'`,
);
const RULE = `case when rule_id <> '' or message <> '' then concat(',"firewall_rule":{',
    case when rule_id <> '' then '"uid":' || to_json(rule_id) else '"name":"${UNKNOWN}"' end,
    ${member("desc", "message")}, '}') else '' end`;

/**
 * Returns SQL for an event's line of JSON: the object of `toOcsf` without a record. The text is put together by hand, because
 * DuckDB reads and writes each object anew that a function for JSON gets.
 */
function toOcsfLine({ zoneId, vendor, actions }: OcsfSettings & { readonly zoneId: number }): Piece {
  const vendorName =
    vendor === null ? raw("''") : duck`',"vendor_name":' || to_json(${bound(vendor)}::varchar)`;
  return duck`concat(
    '{"category_uid":${CATEGORY},"class_uid":${CLASS},"activity_id":', ${raw(ACTIVITY)}, ${raw(ACTIVITY_NAME)},
    ',"type_uid":', ${CLASS * 100} + ${raw(ACTIVITY)}, ',"severity_id":0,"time":', epoch_ms(occurred_at), ${raw(toOutcome(actions))},
    ',"metadata":{"version":"${raw(OCSF_VERSION)}","uid":', to_json(log_id), ',"profiles":["${raw(HTTP_PROFILE)}"]',
    ',"product":{"name":"${raw(PRODUCT)}"', ${vendorName}, ',"feature":{"uid":"${zoneId}"', ${raw(member("name", "feature"))},
    '}}},"src_endpoint":{', ${raw(SOURCE.join(", "))}, '},"http_request":{', rtrim(concat(${raw(REQUEST.join(", "))}), ','), '}',
    ${raw(FINGERPRINT)}, ${raw(RULE)}, '}')`;
}
