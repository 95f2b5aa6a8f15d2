/** Finds the events of a search in one zone or in several. */
import type { SearchPlan } from "#archive/rules/query/plan-search.ts";
import type { ZonesRequest } from "#archive/rules/query/read-search.ts";
import { type EventSource, prepareSource, selectEvents } from "#archive/rules/sql/event-source.ts";
import { duck, type Piece } from "#archive/rules/sql/to-condition.ts";
import type { SearchColumn } from "#model/fields.ts";
import type { EventKey } from "#model/waf-event.ts";
import { searchRecords } from "./find-rows.ts";
import type { FoundEvent, RecordDeps } from "./read-records.ts";
import { readUnion } from "./read-union.ts";
import { withoutKept } from "./searching.ts";

/** An event with its zone and its record, if the caller may see it. */
export interface FoundRecord {
  readonly zoneId: number;
  readonly event: FoundEvent;
  readonly record: Buffer | undefined;
}

/** Events of one zone that are fetched at once. */
const FETCHED_AT_ONCE = 500;

/**
 * Returns one page of the events of zones, newest first; those of one millisecond by log id and then by zone, and how many there are.
 * For several zones, one statement finds the keys of the page. The events are then fetched zone by zone.
 * @throws {UsageError} if a search about the method would have to read too many records, or is about several zones
 */
export async function searchZones(
  deps: RecordDeps,
  { zoneIds, plan, isMasked }: ZonesRequest,
  signal: AbortSignal,
) {
  const [zoneId, ...others] = zoneIds;
  if (zoneId !== undefined && others.length === 0) {
    const { rows, ...found } = await searchRecords(deps, { zoneId, plan, isMasked }, signal);
    return { ...found, rows: rows.map((row): FoundRecord => ({ zoneId, ...row })) };
  }
  const { rows, source } = await readUnion(deps, zoneIds, plan, { columns: KEY_COLUMNS, signal }, (events) =>
    findKeys(events, plan),
  );
  const { keys, total } = readKeys(rows);
  // Few events of short spans: to look for kept hours of each zone would take longer.
  const from = withoutKept(deps);
  const found = new Map<string, FoundRecord>();
  for (const [ofZone, wanted] of Map.groupBy(keys, (key) => key.zoneId))
    for (const row of await fetchEvents(from, { zoneId: ofZone, plan, isMasked }, wanted, signal))
      found.set(nameOf({ zoneId: ofZone, ...row.event }), { zoneId: ofZone, ...row });
  // An event that was withdrawn or erased since is missing.
  return { rows: keys.flatMap((key) => found.get(nameOf(key)) ?? []), total, source };
}

/** Returns the condition that a column, such as one of ids, has one of these values. */
export function isOneOf(column: SearchColumn, texts: readonly string[]): SearchPlan["clauses"][number] {
  return { columns: [column], tests: [{ kind: "equals", texts }] };
}

interface ZoneKey extends EventKey {
  readonly zoneId: number;
}

const KEY_COLUMNS = ["occurred_at", "zone_id", "log_id"];
const nameOf = ({ zoneId, occurredAt, logId }: ZoneKey) => `${zoneId} ${occurredAt} ${logId}`;

function findKeys(source: EventSource, plan: SearchPlan): Piece[] {
  const { page, pageSize } = plan;
  return [
    ...prepareSource(source),
    duck`with events as materialized (${selectEvents(source, plan, KEY_COLUMNS)}),
      page as (select * from events order by occurred_at desc, log_id desc, zone_id
        limit ${pageSize} offset ${page * pageSize})
      select json_array((select count(*) from events))
      union all
      select json_array(zone_id, epoch_ms(occurred_at), log_id, row_number() over (order by occurred_at desc, log_id desc, zone_id)) from page`,
  ];
}

function readKeys(rows: readonly string[]): { readonly keys: readonly ZoneKey[]; readonly total: number } {
  const read = rows.map((row) => JSON.parse(row) as [total: number] | [number, number, string, number]);
  const total = read.find((row): row is [number] => row.length === 1)?.[0] ?? 0;
  const keys = read
    .filter((row): row is [number, number, string, number] => row.length > 1)
    .sort((one, other) => one[3] - other[3])
    .map(([zoneId, occurredAt, logId]) => ({ zoneId, occurredAt, logId }));
  return { keys, total };
}

/** Fetches events of a zone by their log ids, and the few others that have the same ids in the same span. */
async function fetchEvents(
  deps: RecordDeps,
  {
    zoneId,
    plan,
    isMasked,
  }: { readonly zoneId: number; readonly plan: SearchPlan; readonly isMasked: boolean },
  keys: readonly EventKey[],
  signal: AbortSignal,
) {
  const times = keys.map(({ occurredAt }) => occurredAt);
  const span = { from: Math.min(...times), to: Math.max(...times) + 1 };
  const clauses = [isOneOf("log_id", [...new Set(keys.map(({ logId }) => logId))])];
  const rows: Omit<FoundRecord, "zoneId">[] = [];
  for (let page = 0; ; page += 1) {
    const wanted = { ...plan, ...span, clauses, page, pageSize: FETCHED_AT_ONCE };
    const found = await searchRecords(deps, { zoneId, plan: wanted, isMasked }, signal);
    rows.push(...found.rows);
    if (rows.length >= found.total || found.rows.length === 0) return rows;
  }
}
