import { escapeText } from "#lib/text.ts";
import { type ActionStates, classifyAction } from "#model/action-class.ts";
import { BackfillError } from "#operations/backfill/backfill-error.ts";
import { type CsvRecord, readCsv } from "#operations/backfill/read-csv.ts";
import type { RecordedEvent } from "#stages/alerting/backtest/replay-verdicts.ts";

/** The longest record. Eight kilobytes of URL and of user agent fit in. */
const MAX_RECORD_BYTES = 65_536;
const MAX_MISTAKES = 10;
/** The year 2100. A larger number is a time in milliseconds. */
const MAX_SECONDS = 4_102_444_800;
const MAX_ZONE_CHARS = 200;

const COLUMNS = [
  "zone",
  "timestamp",
  "rule_id",
  "ip",
  "asn",
  "country",
  "ja4",
  "ua",
  "url",
  "action",
] as const;
type Column = (typeof COLUMNS)[number];

const RULES = {
  zone: `a name of at most ${MAX_ZONE_CHARS} characters that is not empty`,
  timestamp: "seconds since the epoch",
};

/** Takes one event. If it is out of order, returns the second that it must not be before. */
export type TakeEvent = (zone: string, second: number, event: RecordedEvent) => number | undefined;

/**
 * Reads a CSV file of events in chunks. The header names the columns, in any order; other columns are ignored. Returns
 * the mistakes, each with line, column, value and rule. Stops after ten mistakes.
 */
export async function readEvents(
  chunks: AsyncIterable<Buffer>,
  actions: ActionStates,
  take: TakeEvent,
): Promise<string[]> {
  const mistakes: string[] = [];
  let columns: Record<Column, number> | undefined;
  let line = 0;
  try {
    for await (const record of readCsv(chunks, MAX_RECORD_BYTES)) {
      line = record.line;
      if (columns === undefined) {
        const missing = missingColumns(record.cells);
        if (missing.length > 0) return [headerMistake(record.text, missing)];
        columns = placesOf(record.cells);
        continue;
      }
      const mistake = takeRecord(record, columns, { actions, take });
      if (mistake !== undefined) mistakes.push(mistake);
      if (mistakes.length >= MAX_MISTAKES) return mistakes;
    }
  } catch (thrown) {
    if (!(thrown instanceof BackfillError)) throw thrown;
    return [...mistakes, `line ${line + 1}: ${thrown.message}`];
  }
  return columns === undefined ? [headerMistake("", COLUMNS)] : mistakes;
}

function takeRecord(
  { cells, line }: CsvRecord,
  columns: Record<Column, number>,
  { actions, take }: { actions: ActionStates; take: TakeEvent },
): string | undefined {
  const cell = (column: Column) => cells[columns[column]] ?? "";
  const wrong = (column: Column, rule: string) =>
    `line ${line}, column ${column}: "${escapeText(cell(column).slice(0, 80))}" must be ${rule}`;
  const zone = cell("zone");
  if (zone === "" || zone.length > MAX_ZONE_CHARS) return wrong("zone", RULES.zone);
  const second = toSecond(cell("timestamp"));
  if (Number.isNaN(second)) return wrong("timestamp", RULES.timestamp);
  const after = take(zone, second, {
    ruleId: cell("rule_id"),
    ip: cell("ip"),
    asn: cell("asn"),
    ja4: cell("ja4"),
    ua: cell("ua"),
    url: cell("url"),
    action: classifyAction(cell("action")),
    fate: actions.classify(cell("action")),
  });
  return after === undefined
    ? undefined
    : wrong("timestamp", `at least ${after}, the second of the zone's previous row`);
}

function missingColumns(cells: readonly string[]): Column[] {
  const names = new Set(cells.map((name) => name.trim()));
  return COLUMNS.filter((column) => !names.has(column));
}

function placesOf(cells: readonly string[]): Record<Column, number> {
  const names = cells.map((name) => name.trim());
  return Object.fromEntries(COLUMNS.map((column) => [column, names.indexOf(column)])) as Record<
    Column,
    number
  >;
}

function headerMistake(text: string, missing: readonly Column[]): string {
  return `line 1: "${escapeText(text.slice(0, 80))}" must be the header ${COLUMNS.join(",")}; it lacks ${missing.join(", ")}`;
}

/** Returns NaN for any other text. Fractions of a second are dropped. */
function toSecond(text: string): number {
  const value = /^\d{1,15}(?:\.\d{1,9})?$/.test(text) ? Math.floor(Number(text)) : Number.NaN;
  return value <= MAX_SECONDS ? value : Number.NaN;
}
