/** Counts events by groups in a period, and in another period or zone. */
import { z } from "zod";
import {
  narrowZones,
  parseFilter,
  toNativeFilter,
  WrittenFilters,
  WrittenQuery,
} from "#archive/rules/query/read-search.ts";
import { type EventSource, prepareSource, selectEvents } from "#archive/rules/sql/event-source.ts";
import { duck, type Piece, raw, toTimeCondition } from "#archive/rules/sql/to-condition.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { columnOf, FIELD_NAMES, ZONE_COLUMN } from "#model/fields.ts";
import type { Span } from "#model/horizon.ts";
import { IsoTime, Name, Time, toIso, wholeNumber, ZoneIds } from "#operations/fields.ts";
import { type Cell, defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { listVisibleZones, readZones } from "#operations/require-known.ts";
import { checkOrder } from "#operations/span.ts";
import { readUnion } from "./read-union.ts";
import { planNative, priceSearch } from "./searching.ts";

const WEEK_MS = 7 * DAY_MS;
const AGAINST_RULE = "must be before, week, or the number of a zone";
const counts = {
  count: z.number().int(),
  before: z.number().int().describe("In the other period, or in the other zone."),
  change: z.number().int().describe("`count` less `before`."),
};
const Period = z.object({ from: IsoTime, to: IsoTime });

export const compareEvents = defineQuery({
  name: "compare.show",
  summary: "Count events by groups, and compare them with another period or zone",
  description:
    "The groups whose counts have changed most come first. With `groupBy=zone` and `zone=all` the first group is the zone that has changed most.",
  http: ["GET", "/api/v1/compare"],
  tag: "Events",
  scope: "read",
  refuses: [422, 503],
  input: z.strictObject({
    zone: ZoneIds.default("all"),
    groupBy: z
      .string()
      .max(200)
      .default("zone")
      .describe(`Fields with commas: ${FIELD_NAMES.join(", ")}.`),
    against: z
      .string()
      .regex(/^(before|week|[1-9]\d{0,9})$/, AGAINST_RULE)
      .default("before")
      .describe(
        "before: the period of the same length just before. week: the same period a week earlier. A number: that zone in the same period.",
      ),
    from: Time.optional()
      .meta({ flagDefault: "-7d" })
      .describe("Start of the period. Default: 7 days before its end."),
    to: Time.optional().describe("End of the period. Default: now."),
    query: WrittenQuery.optional().describe("Text in address, rule, URL, user agent or message."),
    filter: z
      .union([WrittenFilters.element, WrittenFilters])
      .optional()
      .meta({ wire: { type: "array", items: { type: "string" } } })
      .describe("field:op:value[,value], as search takes it. All filters must match."),
    limit: wholeNumber(1, 500).default(20).describe("The most groups."),
  }),
  output: z.object({
    period: Period,
    against: Period.extend({ zone: z.number().int().nullable().describe("Null: the same zones.") }),
    items: z.array(
      z.object({
        key: z.record(z.string(), Name).describe("By the names in `groupBy`. Escape them."),
        ...counts,
      }),
    ),
    total: z.object({ ...counts, groups: z.number().int() }),
  }),
  command: {
    name: "",
    limit: null,
    examples: [
      "compare",
      "compare --zone 101 --group-by rule --from -1d --against week",
      "compare --zone 101 --group-by path --against 102 --filter action:eq:block",
    ],
    help: "Without options: which zones have changed most in the last 7 days.",
    columns: [
      {
        head: "CHANGE",
        get: ({ change }): Cell => ({
          text: `${change > 0 ? "+" : change < 0 ? "-" : ""}${formatWhole(Math.abs(change))}`,
          style: change > 0 ? "red" : "dim",
        }),
      },
      { head: "NOW", get: ({ count }) => formatWhole(count) },
      { head: "BEFORE", get: ({ before }) => formatWhole(before) },
      {
        head: "GROUP",
        get: ({ key }) =>
          Object.values(key)
            .map((text) => toLine(text, 120))
            .join("  "),
      },
    ],
    empty: "No event in either period.",
    say: ({ period, against, total }) =>
      `${formatWhole(total.count)} events from ${showTime(period.from)} to ${showTime(period.to)} UTC, ${formatWhole(total.before)} ` +
      `${against.zone === null ? `from ${showTime(against.from)} to ${showTime(against.to)} UTC` : `in zone ${against.zone}`}, ` +
      `${formatWhole(total.groups)} groups.\n`,
  },
  run: async (asked, { zone, groupBy, against, query, filter, limit, ...window }) => {
    const { db, now, caller, service, searching, signal } = asked;
    const to = window.to ?? now;
    const period = { from: window.from ?? to - WEEK_MS, to };
    checkOrder({ name: "from", ms: period.from }, { name: "to", ms: period.to });
    const zones = await readZones(asked, zone);
    const visible = await listVisibleZones(asked);
    const otherZone = /^\d/.test(against) ? Number(against) : null;
    if (otherZone !== null && zones.includes(otherZone))
      throw refuse("against", against, "must be another zone than those of zone");
    if (otherZone !== null && !visible.includes(otherZone))
      throw refuse("against", against, "must be a zone that is configured or has stored data");
    const shift = otherZone !== null ? 0 : against === "week" ? WEEK_MS : period.to - period.from;
    const other = { from: Math.max(0, period.from - shift), to: period.to - shift };
    if (shift === WEEK_MS && other.to > period.from)
      throw refuse("against", against, "must not be week for a period of more than 7 days");
    const planning = { db, nowMs: now, retentionDays: service.retention.eventDays, isMasked: caller.masked };
    const filters = [filter ?? []].flat().map(readFilter);
    const body = { from: other.from, to, query, filters, groupBy: groupBy.split(",") };
    const both = otherZone === null ? zones : [...zones, otherZone];
    const wanted = narrowZones(
      await planNative({ ...planning, zoneIds: visible }, { zoneIds: both, body, kind: "search" }),
    );
    const { plan } = wanted;
    const keys = plan.groupBy.map(columnOf);
    const columns = [...new Set(["occurred_at", ZONE_COLUMN, ...keys])];
    const sides = { period, other, otherZone, keys, limit };
    const price = await priceSearch(db, searching, wanted);
    const rows = await searching.runInPlace({ caller }, { ...price, signal }, async (deps, stopped) => {
      const read = await readUnion(deps, wanted.zoneIds, plan, { columns, signal: stopped }, (source) =>
        countBoth(source, { plan, columns, ...sides }),
      );
      return read.rows;
    });
    const { items, total } = readCounts(rows, plan.groupNames);
    const named = ({ from, to: end }: Span) => ({ from: toIso(from), to: toIso(end) });
    return { period: named(period), against: { ...named(other), zone: otherZone }, items, total };
  },
});

/** @throws {Refusal} 422 */
function readFilter(text: string) {
  const filter = parseFilter(text);
  if (filter === null) throw refuse("filter", text, "must be field:op:value[,value]");
  return toNativeFilter(filter);
}

function refuse(field: string, value: string, rule: string): Refusal {
  return new Refusal(422, { mistakes: [{ field, value: JSON.stringify(value), rule }] });
}

interface Sides {
  readonly plan: Parameters<typeof selectEvents>[1];
  readonly columns: readonly string[];
  readonly period: Span;
  readonly other: Span;
  readonly otherZone: number | null;
  readonly keys: readonly string[];
  readonly limit: number;
}

/** One statement counts both sides, so that they are of one view of the data. */
function countBoth(
  source: EventSource,
  { plan, columns, period, other, otherZone, keys, limit }: Sides,
): Piece[] {
  const isOther = otherZone === null ? raw("true") : duck`${raw(ZONE_COLUMN)} = ${otherZone}`;
  const isOwn = otherZone === null ? raw("true") : duck`${raw(ZONE_COLUMN)} <> ${otherZone}`;
  const names = keys.map((_, index) => `k${index}`).join(", ");
  const texts = keys.map((key, index) => `coalesce(${key}::varchar, '') as k${index}`).join(", ");
  return [
    ...prepareSource(source),
    duck`with counted as materialized (
      select ${raw(texts)}, count(*) filter (${toTimeCondition(period)} and ${isOwn}) as n,
        count(*) filter (${toTimeCondition(other)} and ${isOther}) as b
      from (${selectEvents(source, plan, columns)}) group by all)
      select json_array(coalesce(sum(n), 0)::bigint, coalesce(sum(b), 0)::bigint, count(*)) from counted where n + b > 0
      union all
      select json_array(rank, n, b, [${raw(names)}]) from (
        select *, row_number() over (order by abs(n - b) desc, n desc, ${raw(names)}) as rank from counted where n + b > 0)
      where rank <= ${limit}`,
  ];
}

function readCounts(rows: readonly string[], names: readonly string[]) {
  const read = rows.map(
    (row) => JSON.parse(row) as [number, number, number] | [number, number, number, string[]],
  );
  const [count, before, groups] = read.find((row) => row.length === 3) ?? [0, 0, 0];
  const items = read
    .filter((row): row is [number, number, number, string[]] => row.length === 4)
    .sort(([one], [two]) => one - two)
    .map(([, now, then, key]) => ({
      key: Object.fromEntries(names.map((name, index) => [name, key[index] ?? ""])),
      count: now,
      before: then,
      change: now - then,
    }));
  return { items, total: { count, before, change: count - before, groups } };
}
