/** The back-test of a custom condition: when it would have fired. */
import { z } from "zod";
import { narrowZones, parseFilter, toNativeFilter } from "#archive/rules/query/read-search.ts";
import { type EventSource, prepareSource, selectEvents } from "#archive/rules/sql/event-source.ts";
import { duck, type Piece, raw } from "#archive/rules/sql/to-condition.ts";
import { readUnion } from "#archive/search/read-union.ts";
import { planNative, priceSearch } from "#archive/search/searching.ts";
import { countStoredEvents } from "#db/archive/archived-days.ts";
import { readSearchedThrough } from "#db/detection/spikes.ts";
import { findFirings, type MinuteCount, viewSilence } from "#detection/rules/find-firings.ts";
import { formatShare, formatWhole, many, showTime } from "#lib/format.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type CustomCondition, distinctColumn } from "#model/custom-condition.ts";
import { columnOf, ZONE_COLUMN } from "#model/fields.ts";
import { IsoTime, toIso, toIsoOrNull } from "#operations/fields.ts";
import { type QueryContext } from "#operations/operation.ts";
import { type Mistake, Refusal } from "#operations/refusal.ts";
import { readZones } from "#operations/require-known.ts";

const DEFAULT_MS = 30 * DAY_MS;
/** DuckDB returns at most 10,000 rows. */
const MINUTES_PER_ROW = 1_000;
/** The most minutes with something to count, and times that are shown. */
const MOST_MINUTES = 1_000_000;
const MOST_SHOWN = 20;
/** A search that finds nearly everything is a mistake in the search. A young zone may have few events. */
const NEARLY_ALL = 0.99;
const LEAST_EVENTS = 1_000;
/** No minute was read, so nothing can be said to be absent. */
const NEVER = { through: 0, unknown: [] };

const count = z.number().int();

const Fired = z.object({
  zone: count,
  from: IsoTime,
  to: IsoTime.nullable().describe("Null: it holds now."),
  peak: count,
});
export const BackTest = z
  .object({
    from: IsoTime,
    to: IsoTime,
    events: count.describe("Events that the search finds."),
    of: count.describe("Events that are kept of the zones."),
    times: count.describe("How often the condition would have fired."),
    latest: z.array(Fired).describe(`The latest ${MOST_SHOWN} of these, the newest first.`),
  })
  .meta({ id: "ConditionBackTest" });
export type BackTest = z.infer<typeof BackTest>;

/** @throws {Refusal} 422 for a search that finds nearly everything, or whose back-test would cost too much */
export async function backTest(
  asked: QueryContext,
  condition: CustomCondition,
  { since }: { readonly since?: number | undefined },
): Promise<BackTest> {
  const { db, caller, now, service, searching, signal } = asked;
  const from = since ?? now - DEFAULT_MS;
  const zones = condition.zoneIds ?? (await readZones(asked, "all"));
  const filters = condition.filters.flatMap((text) => {
    const one = parseFilter(text);
    return one === null ? [] : [toNativeFilter(one)];
  });
  const body = { from, to: now, query: condition.query, filters };
  const planning = {
    db,
    zoneIds: zones,
    nowMs: now,
    retentionDays: service.retention.eventDays,
    isMasked: caller.masked,
  };
  const wanted = narrowZones(await planNative(planning, { zoneIds: zones, body, kind: "search" }));
  // First, because more events come while the search runs.
  const of = Math.round(await countStoredEvents(db, zones, { from, to: now }));
  // Every event is read, and not a page of them.
  const price = await priceSearch(db, searching, { ...wanted, plan: { ...wanted.plan, groupBy: ["zone"] } });
  const distinct = condition.distinct === null ? null : columnOf(distinctColumn(condition.distinct));
  const columns = [...new Set(["occurred_at", ZONE_COLUMN, ...(distinct === null ? [] : [distinct])])];
  const rows = await searching.runInPlace({ caller }, { ...price, signal }, async (deps, stopped) => {
    const options = { columns, signal: stopped };
    const toStatements = (source: EventSource) =>
      countMinutes(source, { plan: wanted.plan, columns, distinct });
    return (await readUnion(deps, wanted.zoneIds, wanted.plan, options, toStatements)).rows;
  });
  const { events, byZone, minutes } = readMinutes(rows);
  if (minutes > MOST_MINUTES)
    throw refuse({
      field: "filter",
      rule: `must find less in the back-test: it would cost more than ${formatWhole(MOST_MINUTES)} counts of minutes. Add a filter, or test a later --since`,
    });
  if (condition.moreThan !== null && of >= LEAST_EVENTS && events >= NEARLY_ALL * of)
    throw refuse({
      field: "filter",
      rule: `must leave some events out: this matches ${formatShare(Math.min(1, events / of))} of the ${formatWhole(of)} events since ${showTime(from)} UTC`,
    });
  const fired = [];
  for (const zone of zones) {
    const covered = { afterMs: from - HOUR_MS, untilMs: now, zoneId: zone };
    const known = { fromMs: from, nowMs: now, within: Math.floor((now - from) / MINUTE_MS) };
    const { through, unknown } =
      condition.moreThan === null
        ? (viewSilence(await readSearchedThrough(db, covered), known) ?? NEVER)
        : { through: Math.floor(now / MINUTE_MS) + 1, unknown: [] };
    const span = { from: Math.ceil(from / MINUTE_MS), to: through };
    for (const firing of findFirings([...(byZone.get(zone) ?? []), ...unknown], condition, span))
      fired.push({ zone, ...firing });
  }
  fired.sort((a, b) => b.from - a.from);
  const latest = fired.slice(0, MOST_SHOWN).map(({ zone, from: began, to, peak }) => {
    return {
      zone,
      from: toIso(began * MINUTE_MS),
      to: toIsoOrNull(to === null ? null : to * MINUTE_MS),
      peak,
    };
  });
  return { from: toIso(from), to: toIso(now), events, of, times: fired.length, latest };
}

/** The last statement returns the number of events, and of each minute of a zone their number, or the hash of each different value. */
function countMinutes(
  source: EventSource,
  {
    plan,
    columns,
    distinct,
  }: { plan: Parameters<typeof selectEvents>[1]; columns: readonly string[]; distinct: string | null },
): Piece[] {
  const value =
    distinct === null ? "0" : `case when ${distinct} <> '' then (hash(${distinct}) >> 16)::bigint end`;
  return [
    ...prepareSource(source),
    duck`with counted as materialized (
      select zone_id, epoch_ms(occurred_at) // 60000 as minute, ${raw(value)} as value, count(*) as n
      from (${selectEvents(source, plan, columns)}) group by all)
      select json_array(coalesce(sum(n), 0)::bigint) from counted
      union all
      select json_array(zone_id, list([minute, n, value])) from (
        select *, row_number() over (order by zone_id) // ${MINUTES_PER_ROW} as part from counted limit ${MOST_MINUTES + 1})
      group by zone_id, part`,
  ];
}

function readMinutes(rows: readonly string[]) {
  const byZone = new Map<number, MinuteCount[]>();
  let [events, minutes] = [0, 0];
  for (const row of rows) {
    const [first, counted] = JSON.parse(row) as [number] | [number, [number, number, number | null][]];
    if (counted === undefined) {
      events = first;
      continue;
    }
    const ofZone = byZone.get(first) ?? [];
    byZone.set(first, ofZone);
    for (const [minute, n, value] of counted)
      ofZone.push({ minute, count: n, values: value === null ? [] : [value] });
    minutes += counted.length;
  }
  return { events, byZone, minutes };
}

export function sayBackTest({ from, to, events, of, times, latest }: BackTest): string {
  const days = many(Math.max(1, Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS)), "day");
  const lines = latest.map((one) => {
    const until = one.to === null ? "now" : `${showTime(one.to)} UTC`;
    return `  zone ${one.zone}  ${showTime(one.from)} to ${until}${one.peak === 0 ? "" : `, at most ${formatWhole(one.peak)}`}`;
  });
  const more = times - latest.length;
  return [
    `It would have fired ${many(times, "time")} in ${days}${times === 0 ? "" : ":"}`,
    ...lines,
    ...(more > 0 ? [`  and ${many(more, "time")} before`] : []),
    `The search finds ${formatWhole(events)} of ${formatWhole(of)} events.`,
  ]
    .join("\n")
    .concat("\n");
}

export function refuse(...mistakes: Mistake[]): Refusal {
  return new Refusal(422, { slug: "invalid-condition", mistakes });
}
