/** The command that searches events. */
import type { Command } from "commander";
import { EXPORT_HEADER, toColumnLine, toCsvLine, toJsonLine } from "#archive/rules/export-lines.ts";
import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import type { ColumnChoice, ColumnRow } from "#archive/rules/records/to-row.ts";
import type { Searching } from "#archive/search/searching.ts";
import type { Config } from "#config/config.ts";
import type { Paint } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { drawSparkline } from "#delivery/rules/message/text-width.ts";
import { withSearch } from "#faces/cli/store/store-command.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { DIMENSIONS, EVENT_FORMATS, type EventFormat } from "#model/kinds.ts";
import type { AskOperation } from "#operations/operation.ts";
import { createProcessIo, writeJoinedPages, writeJson, writeOut, writeText } from "../edge/edge-io.ts";
import {
  addSearchOptions,
  type ColumnFlags,
  readColumnFlags,
  readRequest,
  readSearchFlags,
  type SearchFlags,
} from "../edge/read-search.ts";
import { allowRemote, pickAsk } from "../operations/remote-commands.ts";
import { findChosen, findZones, readZoneChoice } from "../options/read-options.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { type Cell, createEventPrinter, cutLine, drawTable, pickPaint } from "../terminal/print.ts";
import {
  type FoundPage,
  findPages,
  planAsked,
  readPages,
  requireKept,
  toEvents,
  toLinesOf,
  toNativeRequest,
  toPlatformAnswer,
} from "./find-pages.ts";

const HELP = `
The command searches everything that is kept: the database and the files of the archive. Events come newest first, groups
largest first. The path is the URL without host and query, the host is without port; url is the whole URL. The platform's names
of the fields (ruleId, ip, asn, ua) are accepted. The method is in the records of events only, and one search reads 10,000
records at most. The JSON is that of edge events search, which asks the platform about the last 72 hours.
--format ocsf prints HTTP Activities of OCSF 1.8 with their records (docs/ocsf.md), raw the entries as received, and event the
rows of the API. --columns chooses the columns of text, CSV and --format event (docs/api.md).
Times are UTC. On a terminal a line is cut to its width. Control characters in payloads are spelled out. In CSV, a cell that
a spreadsheet would run as a formula begins with an apostrophe. To get many events, use export.

Examples:
  npm run -s longwatch -- search --zone 101 --from -1h --format ocsf --page-all
  npm run -s longwatch -- search --zone 101,102 --from -30d --filter address:eq:203.0.113.7
  npm run -s longwatch -- search --zone all --from -7d --group-by zone,rule --buckets 7
  npm run -s longwatch -- search --account agency-a --from -7d --group-by rule
  npm run -s longwatch -- search --zone 101 --from -90d --group-by rule --buckets 24 --limit 20
  npm run -s longwatch -- search --zone 101 --from -7d --group-by path --filter path:not-contains:/admin
  npm run -s longwatch -- search --zone 101 --from 2026-11-01 --to 2026-11-08 --query /wp-login --json
  npm run -s longwatch -- search --zone 101 --from -7d --group-by country,action --csv > countries.csv`;

type Flags = SearchFlags &
  ColumnFlags & { readonly json?: true; readonly csv?: true; readonly format?: string };

interface PlannedSearch {
  /** As the API takes them. */
  readonly zone: string;
  readonly plan: SearchPlan;
  readonly limit: number;
  /** Whether several pages are joined. */
  readonly isJoined: boolean;
}

/** `longwatch search`: searches and groups all kept events. */
export function searchCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return addSearchOptions(allowRemote(storeCommand("search", HELP, io)), true)
    .option("--json", "print JSON as edge events search does")
    .option("--csv", "print CSV")
    .option("--format <format>", `print each event as one line of JSON: ${EVENT_FORMATS.join(", ")}`)
    .action(
      storeAction<Flags>(io, async ({ json, csv, format: given, columns, timeZone, ...flags }, read) => {
        const zones = readZoneChoice(read, flags);
        const { window, more, limit, pageAll } = readSearchFlags(flags, read, true);
        const request = await readRequest(window, more, { read, io });
        const plan = planAsked(read, request, { kind: "search", flags: window });
        if ([json, csv, given].filter((flag) => flag !== undefined).length > 1)
          read.mistakes.push("--csv, --json and --format exclude each other");
        const format = EVENT_FORMATS.find((one) => one === given);
        if (given !== undefined && format === undefined)
          read.wrong("format", given, `one of ${EVENT_FORMATS.join(", ")}`);
        if (given !== undefined && flags.groupBy !== undefined)
          read.wrong("format", given, "left out beside --group-by, because groups have one format only");
        const isGrouped = plan !== undefined && plan.groupBy.length > 0;
        const other = isGrouped
          ? "--group-by"
          : format === "raw" || format === "ocsf"
            ? `--format ${format}`
            : null;
        const beside = json === true ? "--json" : other;
        const choice = readColumnFlags(read, { columns, timeZone }, { isExport: false, beside });
        read.finish();
        if (plan === undefined) return;
        const config = readConfig();
        const zone = await findChosen(pickAsk(config, io, null), zones);
        const asked = {
          zone,
          plan,
          limit: limit ?? (pageAll ? Number.POSITIVE_INFINITY : plan.pageSize),
          isJoined: limit !== undefined || pageAll,
        };
        const native = { ...(toNativeRequest(request, window) as object), ...choice };
        const show = (ask: AskOperation) => {
          const wanted = { pageSize: plan.pageSize, format: format ?? "event" };
          const pages = readPages(findPages(ask, zone, native, wanted), plan, asked.limit);
          return print(io, asked, { format, isJson: json === true, isCsv: csv === true, choice }, pages);
        };
        if (config.remote !== null) return show(pickAsk(config, io, null));
        requireKept(plan, config, io.clock());
        const { askOn } = await import("../operations/ask-locally.ts");
        await withSearch(io, config, async (deps, database, signal) => {
          await findZones(database.db, config, zone);
          const runInPlace: Searching["runInPlace"] = (_asked, _work, run) => run(deps, signal);
          await show(askOn(database, { config, clock: io.clock, actor: null, runInPlace }));
        });
      }),
    );
}

interface Shown {
  readonly format: EventFormat | undefined;
  readonly isJson: boolean;
  readonly isCsv: boolean;
  readonly choice: ColumnChoice | null;
}

async function print(
  io: StoreIo,
  asked: PlannedSearch,
  { format, isJson, isCsv, choice }: Shown,
  pages: AsyncIterable<FoundPage>,
): Promise<void> {
  if (choice !== null) await printColumns(io, asked, { format, isCsv, columns: choice.columns }, pages);
  else if (format !== undefined)
    for await (const page of pages) await writeOut(io.stdout, toLinesOf(page, format));
  else if (isJson) await printJson(io, asked, pages);
  else if (isCsv) await printCsv(io, asked, pages);
  else await printText(io, asked, pages);
}

/** Prints the chosen columns of events as NDJSON, CSV or tables, whose head is printed once. */
async function printColumns(
  io: StoreIo,
  asked: PlannedSearch,
  { format, isCsv, columns }: Pick<Shown, "format" | "isCsv"> & Pick<ColumnChoice, "columns">,
  pages: AsyncIterable<FoundPage>,
): Promise<void> {
  const paint = pickPaint(io);
  let [isFirst, shown, total] = [true, 0, 0];
  for await (const page of pages) {
    const rows = page.rows as ColumnRow[];
    shown += rows.length;
    total = page.total;
    const draw = () => {
      const cells = rows.map((row) => columns.map((name) => shortenText(String(row[name]), MAX_LAST_CHARS)));
      const table = rows.length === 0 ? "" : fit(io, drawTable(columns.map(toTitle), cells, paint));
      return isFirst ? table : table.slice(table.indexOf("\n") + 1);
    };
    const head = isFirst && isCsv ? toCsvLine(columns) : "";
    const lines =
      isCsv || format !== undefined ? rows.map(isCsv ? toColumnLine : toJsonLine).join("") : draw();
    await writeText(io.stdout, [`${head}${lines}`]);
    isFirst = false;
  }
  if (!isCsv && format === undefined)
    await writeOut(io.stdout, describeShown(asked.plan, { shown, total, isJoined: asked.isJoined }));
}

async function printJson(
  { stdout }: StoreIo,
  { plan, isJoined }: PlannedSearch,
  pages: AsyncIterable<FoundPage>,
) {
  const answers = toAnswers(pages, plan.pageSize);
  if (isJoined) await writeJoinedPages(stdout, plan.groupBy.length > 0 ? "groups" : "rows", answers);
  else for await (const answer of answers) await writeJson(stdout, answer);
}

async function* toAnswers(pages: AsyncIterable<FoundPage>, pageSize: number) {
  for await (const page of pages) yield toPlatformAnswer(page, pageSize);
}

async function printCsv(
  { stdout }: StoreIo,
  { zone, plan: { groupNames, buckets } }: PlannedSearch,
  pages: AsyncIterable<FoundPage>,
): Promise<void> {
  const isOne = /^\d+$/.test(zone);
  const rowHead = isOne ? EXPORT_HEADER : EXPORT_HEADER.replace(/(?=\r?\n$)/, ",zone");
  const head = groupNames.length === 0 ? rowHead : toCsvLine(groupHeader(groupNames, buckets > 0));
  let isFirst = true;
  for await (const page of pages) {
    const lines = [
      ...toEvents(page).map(({ zoneId, occurredAt, logId, fields }) => {
        const cells = [String(occurredAt), logId, ...DIMENSIONS.map((name) => fields[name])];
        return toCsvLine(isOne ? cells : [...cells, String(zoneId)]);
      }),
      ...page.groups.map((group) => toCsvLine(toGroupCells(group, groupNames))),
    ];
    await writeText(stdout, [`${isFirst ? head : ""}${lines.join("")}`]);
    isFirst = false;
  }
}

async function printText(
  io: StoreIo,
  { plan, isJoined }: PlannedSearch,
  pages: AsyncIterable<FoundPage>,
): Promise<void> {
  const paint = pickPaint(io);
  const printEvent = createEventPrinter(io);
  const groups: FoundPage["groups"][number][] = [];
  let shown = 0;
  let total = 0;
  for await (const page of pages) {
    total = page.total;
    shown += page.rows.length + page.groups.length;
    groups.push(...page.groups);
    await writeOut(
      io.stdout,
      toEvents(page)
        .map((event) => printEvent(event.zoneId, event))
        .join(""),
    );
  }
  if (groups.length > 0) await writeOut(io.stdout, fit(io, drawGroups(groups, plan.groupNames, paint)));
  await writeOut(io.stdout, describeShown(plan, { shown, total, isJoined }));
}

function fit({ stdout }: StoreIo, text: string): string {
  if (stdout.isTTY !== true) return text;
  const lines = text.split("\n");
  return lines.map((line) => cutLine(line, stdout.columns ?? 80)).join("\n");
}

function describeShown(
  { groupBy, page, pageSize }: SearchPlan,
  { shown, total, isJoined }: { shown: number; total: number; isJoined: boolean },
): string {
  const what = groupBy.length === 0 ? "event" : "group";
  if (total === 0) return `No ${what} matches.\n`;
  const whats = total === 1 ? what : `${what}s`;
  const first = page * pageSize;
  if (shown === 0) return `Page ${page} is behind the last page: ${formatWhole(total)} ${whats} match.\n`;
  const span = `${formatWhole(first + 1)} to ${formatWhole(first + shown)} of ${formatWhole(total)} ${whats}`;
  const isMore = first + shown < total;
  return `${span}.${isMore && !isJoined ? ` --page ${page + 1} shows the next page, --limit more at once.` : ""}\n`;
}

const TREND_COLUMNS = 20;
/** So many buckets have a column each: the hours of a day. */
const DRAWN_SINGLY = 24;
/** Longest value in every column but the last. */
const MAX_KEY_CHARS = 24;
/** Longest value in the last column. */
const MAX_LAST_CHARS = 300;

type Groups = FoundPage["groups"];

/** Returns groups as a table. A sparkline stands for the count of each time bucket. The values of events are shortened. */
function drawGroups(groups: Groups, groupBy: readonly string[], paint: Paint): string {
  const hasTrend = groups.some(({ sparkline }) => sparkline !== null);
  const head = ["COUNT", "BLOCKED", ...(hasTrend ? ["TREND"] : []), "LAST SEEN", ...groupBy.map(toTitle)];
  const rows = groups.map(({ key, count: events, context, lastSeen, sparkline }): Cell[] => [
    formatWhole(events),
    context.blocked === 0 ? "-" : { text: formatWhole(context.blocked), style: "red" },
    ...(hasTrend ? [drawTrend(sparkline ?? [])] : []),
    showTime(lastSeen - (lastSeen % 60_000)),
    ...groupBy.map((name, column) =>
      shortenText(key[name] ?? "", column === groupBy.length - 1 ? MAX_LAST_CHARS : MAX_KEY_CHARS),
    ),
  ]);
  return drawTable(head, rows, paint);
}

function drawTrend(counts: readonly number[]): string {
  return drawSparkline(counts, counts.length <= DRAWN_SINGLY ? DRAWN_SINGLY : TREND_COLUMNS);
}

/** Returns a dimension as the head of its column: `ruleId` as `RULE ID`. */
function toTitle(dimension: string): string {
  return dimension.replace(/(?=[A-Z])/, " ").toUpperCase();
}

/** The columns of a group's context in CSV. A dimension may have the same name, so the prefix stays. */
const CONTEXT = ["country", "asn", "blocked", "challenged", "logged", "features", "ruleIds"] as const;

/** Returns the names of the columns of groups in CSV. */
function groupHeader(groupBy: readonly string[], hasBuckets: boolean): string[] {
  const context = CONTEXT.map((name) => `context.${name}`);
  return [...groupBy, "count", "firstSeen", "lastSeen", ...context, ...(hasBuckets ? ["sparkline"] : [])];
}

/** Returns the cells of a group in CSV. The counts of the time buckets are separated by spaces. */
function toGroupCells(group: Groups[number], groupBy: readonly string[]): string[] {
  const { key, count: events, firstSeen, lastSeen, context, sparkline } = group;
  const numbers = [events, firstSeen, lastSeen];
  return [
    ...groupBy.map((name) => key[name] ?? ""),
    ...numbers.map(String),
    ...CONTEXT.map((name) => String(context[name])),
    ...(sparkline === null ? [] : [sparkline.join(" ")]),
  ];
}
