import { type SQL, sql } from "drizzle-orm";
import type { StoredSources } from "../../src/model/stored-sources.ts";
import type { Queryable } from "../client.ts";
import { wafEvents } from "../schema/waf-events.ts";

type SourceKind = StoredSources["kind"];

export interface StoredSourceEvent {
  /** Since the epoch. */
  readonly minute: number;
  readonly ruleId: string | null;
  readonly ip: string | null;
  readonly asn: string | null;
  readonly country: string | null;
  readonly ja4: string | null;
  readonly ua: string | null;
  readonly url: string | null;
}

/** Minutes of the first statement, and the most events that are read of them. More of a flood would not change its counts. */
const SLICE_MINUTES = 5;
export const SLICE_EVENTS = 100_000;
const LONGEST_SLICE = 120;
/** A slice with fewer events than this makes the next one longer. */
const FEW_EVENTS = 2_000;

const MINUTE = sql`floor(date_part('epoch', occurred_at) / 60)::integer as minute`;
/** The fields that the series count. A person who was erased has no address. */
const COUNTED = sql`${MINUTE}, left(rule_id, 300) as "ruleId", nullif(left(ip, 300), 'erased') as ip, left(asn, 300) as asn,
  left(ja4, 300) as ja4, left(ua, 300) as ua, left(url, 1024) as url`;

/** Yields the events of the minutes [from, to) in the order of time, with what the source series read of them. */
export async function* readSourceEvents(
  db: Queryable,
  { zoneId, from, to }: { zoneId: number; from: number; to: number },
): AsyncGenerator<readonly StoredSourceEvent[]> {
  let minutes = SLICE_MINUTES;
  for (let start = from; start < to; ) {
    const end = Math.min(start + minutes, to);
    const { rows } = await db.execute<StoredSourceEvent & Record<string, unknown>>(sql`
      select ${COUNTED}, left(country, 300) as country
      from ${wafEvents} where zone_id = ${zoneId}
        and occurred_at >= to_timestamp(${start}::float8 * 60) and occurred_at < to_timestamp(${end}::float8 * 60)
      order by occurred_at limit ${SLICE_EVENTS}`);
    if (rows.length >= SLICE_EVENTS && minutes > SLICE_MINUTES) {
      minutes = SLICE_MINUTES;
      continue;
    }
    if (rows.length > 0) yield rows;
    start = end;
    minutes = rows.length < FEW_EVENTS ? Math.min(4 * minutes, LONGEST_SLICE) : SLICE_MINUTES;
  }
}

/** A part of a zone's time. Minutes are numbered since the epoch; `to` is exclusive. */
export interface ZoneMinutes {
  readonly zoneId: number;
  readonly from: number;
  readonly to: number;
}

export type CountedSourceEvent = Omit<StoredSourceEvent, "country">;

/**
 * Returns the events of many zones, each in the order of time, with one statement. Returns null for a zone that has
 * `limit` events or more.
 */
export async function readEventsOfZones(
  db: Queryable,
  zones: readonly ZoneMinutes[],
  limit: number,
): Promise<ReadonlyMap<number, readonly CountedSourceEvent[] | null>> {
  const { rows } = await db.execute<CountedSourceEvent & { zoneId: number }>(sql`
    select asked.zone_id as "zoneId", e.* from ${toAsked(zones)}
    cross join lateral (
      select ${COUNTED} from ${wafEvents} where zone_id = asked.zone_id and ${IN_ASKED}
      order by occurred_at limit ${limit}) e`);
  const found = Map.groupBy(rows, ({ zoneId }) => zoneId);
  return new Map(
    zones.map(({ zoneId }) => {
      const events = found.get(zoneId) ?? [];
      return [zoneId, events.length >= limit ? null : events];
    }),
  );
}

/** Returns how many events each part has, in the same order. */
export async function countEventsOfZones(db: Queryable, zones: readonly ZoneMinutes[]): Promise<number[]> {
  const { rows } = await db.execute<{ total: number }>(sql`
    select e.total from ${toAsked(zones)}
    cross join lateral (
      select count(*)::integer as total from ${wafEvents} where zone_id = asked.zone_id and ${IN_ASKED}) e
    order by asked.place`);
  return rows.map(({ total }) => total);
}

function toAsked(zones: readonly ZoneMinutes[]): SQL {
  const column = (read: (one: ZoneMinutes) => number) => sql.param(zones.map(read));
  return sql`unnest(${column(({ zoneId }) => zoneId)}::integer[], ${column(({ from }) => from)}::float8[],
    ${column(({ to }) => to)}::float8[]) with ordinality as asked(zone_id, from_minute, to_minute, place)`;
}

const IN_ASKED = sql`occurred_at >= to_timestamp(asked.from_minute * 60)
  and occurred_at < to_timestamp(asked.to_minute * 60)`;

/** SQL for the field by which a series names its sources, as the source series read it. */
const KEY_COLUMNS = {
  rules_per_ip: sql`left(ip, 300)`,
  ips_per_ja4: sql`left(ja4, 300)`,
  ips_per_url: sql`left(regexp_replace(split_part(split_part(url, '?', 1), '#', 1), '^[A-Za-z][A-Za-z0-9+.-]*://[^/]*', ''), 300)`,
  ips_per_ua: sql`left(ua, 300)`,
  ips_per_asn: sql`left(asn, 300)`,
};
/** A sender of IPv6 is a network, which no text column holds. */
const IPV6_SENDER = /::\/64$/;

/** Returns the minute of the first event of a source in the minutes [from, to); null without any. */
export async function readFirstSeen(
  db: Queryable,
  {
    zoneId,
    kind,
    key,
    from,
    to,
  }: { zoneId: number; kind: SourceKind; key: string; from: number; to: number },
  toSource: (ip: string) => string,
): Promise<number | null> {
  const isNetwork = kind === "rules_per_ip" && IPV6_SENDER.test(key);
  const isSource = isNetwork ? sql`ip like '%:%'` : sql`${KEY_COLUMNS[kind]} = ${key}`;
  const { rows } = await db.execute<{ ip: string | null; minute: number }>(sql`
    select ${isNetwork ? sql`left(ip, 300)` : sql`null::text`} as ip,
      floor(extract(epoch from min(occurred_at)) / 60)::integer as minute
    from ${wafEvents} where zone_id = ${zoneId} and ${isSource}
      and occurred_at >= to_timestamp(${from}::float8 * 60) and occurred_at < to_timestamp(${to}::float8 * 60)
    group by 1`);
  const found = rows.filter(({ ip }) => ip === null || toSource(ip) === key).map(({ minute }) => minute);
  return found.length === 0 ? null : found.reduce((one, other) => Math.min(one, other));
}

/** Returns the minute of each zone's first event from `from` on. Zones without any are left out. */
export async function readFirstEventMinutes(
  db: Queryable,
  zoneIds: readonly number[],
  from: number,
): Promise<ReadonlyMap<number, number>> {
  const { rows } = await db.execute<{ zoneId: number; minute: number }>(sql`
    select asked.zone_id as "zoneId", e.minute from unnest(${sql.param(zoneIds)}::integer[]) as asked(zone_id)
    cross join lateral (
      select ${MINUTE} from ${wafEvents}
      where zone_id = asked.zone_id and occurred_at >= to_timestamp(${from}::float8 * 60)
      order by occurred_at limit 1) e`);
  return new Map(rows.map(({ zoneId, minute }) => [zoneId, minute]));
}

/** Returns the different addresses of a rule in the minutes [from, to), `limit` at most. */
export async function readRuleAddresses(
  db: Queryable,
  {
    zoneId,
    ruleId,
    from,
    to,
    limit,
  }: { zoneId: number; ruleId: string; from: number; to: number; limit: number },
): Promise<string[]> {
  const { rows } = await db.execute<{ ip: string }>(sql`
    select distinct left(ip, 300) as ip from ${wafEvents}
    where zone_id = ${zoneId} and ${ruleId === "" ? sql`coalesce(rule_id, '') = ''` : sql`rule_id = ${ruleId}`}
      and occurred_at >= to_timestamp(${from}::float8 * 60) and occurred_at < to_timestamp(${to}::float8 * 60)
      and ip not in ('', 'erased')
    limit ${limit}`);
  return rows.map(({ ip }) => ip);
}

/** Returns how many events of the minutes from `from` on the roll-up has counted, by zone and minute. */
export async function readMinuteTotals(
  db: Queryable,
  from: number,
): Promise<ReadonlyMap<number, ReadonlyMap<number, number>>> {
  const { rows } = await db.execute<{ zoneId: number; minute: number; total: number }>(sql`
    select zone_id as "zoneId", (extract(epoch from starts_at) / 60)::integer as minute, sum(total)::integer as total
    from rule_buckets where width = 60 and starts_at >= to_timestamp(${from}::float8 * 60) group by 1, 2`);
  const zones = new Map<number, Map<number, number>>();
  for (const { zoneId, minute, total } of rows) {
    const minutes = zones.get(zoneId) ?? new Map<number, number>();
    zones.set(zoneId, minutes.set(minute, total));
  }
  return zones;
}
