import { formatWhole, showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import type { Paint } from "#stages/delivery/channels/terminal/terminal-style.ts";
import { drawSparkline } from "#stages/delivery/message/draw-sparkline.ts";
import { type Cell, drawTable } from "../terminal/draw-table.ts";
import type { FoundPage } from "./find-pages.ts";

const TREND_COLUMNS = 20;
/** So many buckets have a column each: the hours of a day. */
const DRAWN_SINGLY = 24;
/** Longest value in every column but the last. */
const MAX_KEY_CHARS = 24;
/** Longest value in the last column. */
const MAX_LAST_CHARS = 300;

type Groups = FoundPage["groups"];

/** Returns groups as a table. A sparkline stands for the count of each time bucket. The values of events are shortened. */
export function drawGroups(groups: Groups, groupBy: readonly string[], paint: Paint): string {
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
export function groupHeader(groupBy: readonly string[], hasBuckets: boolean): string[] {
  const context = CONTEXT.map((name) => `context.${name}`);
  return [...groupBy, "count", "firstSeen", "lastSeen", ...context, ...(hasBuckets ? ["sparkline"] : [])];
}

/** Returns the cells of a group in CSV. The counts of the time buckets are separated by spaces. */
export function toGroupCells(group: Groups[number], groupBy: readonly string[]): string[] {
  const { key, count: events, firstSeen, lastSeen, context, sparkline } = group;
  const numbers = [events, firstSeen, lastSeen];
  return [
    ...groupBy.map((name) => key[name] ?? ""),
    ...numbers.map(String),
    ...CONTEXT.map((name) => String(context[name])),
    ...(sparkline === null ? [] : [sparkline.join(" ")]),
  ];
}
