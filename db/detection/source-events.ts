import { setImmediate as letOthersRun } from "node:timers/promises";
import { type SQL, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import { inTurns } from "#lib/waiting.ts";
import type { StoredSources } from "#model/stored-sources.ts";
import type { Database, Queryable } from "../client.ts";
import { runPrepared, toPrepared } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";

const e = alias(wafEvents, "e");

type SourceKind = StoredSources["kind"];

export interface StoredSourceEvent {
  /** Since the epoch. */
  readonly minute: number;
  /** Empty if a value is not known. */
  readonly ruleId: string;
  readonly ip: string;
  readonly asn: string;
  readonly country: string;
  readonly ja4: string;
  readonly ua: string;
  readonly url: string;
}

/** The first span that is read of a longer one, and the most events of a span. More of a flood would not change its counts. */
const FIRST_SLICE = 10;
const SLICE_MINUTES = 5;
const SLICE_EVENTS = 100_000;
const LONGEST_SLICE = 120;
/** To split a column of so many events takes milliseconds. */
const MANY_EVENTS = 10_000;
/** A slice with fewer events than this makes the next one longer. */
const FEW_EVENTS = 2_000;

const MINUTE = sql`floor(date_part('epoch', ${e.occurredAt}) / 60)::integer`;

/** A part of a zone's time. Minutes are numbered since the epoch; `to` is exclusive. */
export interface ZoneMinutes {
  readonly zoneId: number;
  readonly from: number;
  readonly to: number;
}

/** Events in the order of time, of one minute or several. */
export interface EventPart {
  readonly events: readonly StoredSourceEvent[];
  /** Whether further events of these minutes were not read. */
  readonly isCut: boolean;
}

/**
 * Yields the events of the minutes [from, to) in the order of time, with what the source series read of them. The parts are small, and
 * requests and timers run between them: a flood has a hundred thousand events in some minutes.
 */
export async function* readSourceEvents(
  db: Queryable,
  { zoneId, from, to }: ZoneMinutes,
): AsyncGenerator<EventPart> {
  let minutes = FIRST_SLICE;
  for (let start = from; start < to; ) {
    const end = Math.min(start + minutes, to);
    const slice = { zoneId, from: start, to: end };
    const { rows } = await db.execute<EventColumns>(selectEvents(toAsked(slice), SLICE_EVENTS));
    const [row] = rows;
    const all =
      row === undefined
        ? []
        : ((await toEvents(row)) ?? (await readWithoutSeparator(db, slice, SLICE_EVENTS)));
    const count = all.length;
    const isCut = count >= SLICE_EVENTS;
    if (isCut && minutes > SLICE_MINUTES) {
      minutes = SLICE_MINUTES;
      continue;
    }
    if (count > 0) for await (const events of inTurns(all)) yield { events, isCut };
    start = end;
    minutes = count < FEW_EVENTS ? Math.min(4 * minutes, LONGEST_SLICE) : SLICE_MINUTES;
  }
}

/** Returns the same events at once. */
export async function readAllSourceEvents(db: Queryable, span: ZoneMinutes): Promise<StoredSourceEvent[]> {
  const all: StoredSourceEvent[] = [];
  for await (const { events } of readSourceEvents(db, span)) all.push(...events);
  return all;
}

/** Returns the events of a zone in the hour that ends with a minute. */
export function readHour(db: Queryable, zoneId: number, minute: number): Promise<StoredSourceEvent[]> {
  return readAllSourceEvents(db, { zoneId, from: minute - 59, to: minute + 1 });
}

/**
 * Returns the events of many zones, each in the order of time, with one statement. Returns null for a zone that has
 * `limit` events or more.
 */
export async function readEventsOfZones(
  { db, pool }: Pick<Database, "db" | "pool">,
  zones: readonly ZoneMinutes[],
  limit: number,
): Promise<ReadonlyMap<number, readonly StoredSourceEvent[] | null>> {
  const values = [...toColumns(zones), limit];
  const rows = await runPrepared<EventColumns>(pool, { ...PREPARED, values });
  const found = new Map<number, readonly StoredSourceEvent[] | null>();
  for (const row of rows) {
    const zone = zones.find(({ zoneId }) => zoneId === row.zoneId);
    if (zone === undefined) continue;
    const events = (await toEvents(row)) ?? (await readWithoutSeparator(db, zone, limit));
    found.set(row.zoneId, events.length >= limit ? null : events);
  }
  return found;
}

/** Between the values of a column. Hardly any text holds this control character. */
const SEPARATOR = "\x1f";

/** The events of a part: of each column the values of all events, one after the other. */
type EventColumns = Readonly<Record<Exclude<keyof StoredSourceEvent, "minute">, string>> & {
  readonly zoneId: number;
  readonly total: number;
  readonly minutes: string;
};

/** A row per event would take the driver and the server several times as long. */
function selectEvents(asked: SQL, limit: number | SQL, toValue = (value: SQL) => value): SQL {
  const values = (value: PgColumn, maxChars = 300) => {
    const max = sql.raw(String(maxChars));
    // `left` counts all characters of a text, which would take longer than everything else.
    const cut = sql`case when octet_length(${value}) > ${max} then left(${value}, ${max}) else ${value} end`;
    return sql`string_agg(coalesce(${toValue(cut)}, ''), E'\\x1f')`;
  };
  return sql`
    select asked.zone_id as "zoneId", found.* from ${asked}
    cross join lateral (
      select count(*)::integer as total,
        string_agg(${MINUTE}::text, E'\\x1f') as minutes,
        ${values(e.ruleId)} as "ruleId", ${values(e.ip)} as ip, ${values(e.asn)} as asn,
        ${values(e.country)} as country, ${values(e.ja4)} as ja4, ${values(e.ua)} as ua, ${values(e.url, 1_024)} as url
      from (
        select ${e.occurredAt}, ${e.ruleId}, ${e.ip}, ${e.asn}, ${e.country}, ${e.ja4}, ${e.ua}, ${e.url}
        from ${wafEvents} ${e}
        where ${e.zoneId} = asked.zone_id and ${IN_ASKED} order by ${e.occurredAt} limit ${limit}) ${e}) found
    where found.total > 0`;
}

/** Reads a part that has a value with a separator, which somebody who attacks can send. */
async function readWithoutSeparator(
  db: Queryable,
  zone: ZoneMinutes,
  limit: number,
): Promise<StoredSourceEvent[]> {
  const toValue = (value: SQL) => sql`replace(${value}, E'\\x1f', ' ')`;
  const { rows } = await db.execute<EventColumns>(selectEvents(toAsked(zone), limit, toValue));
  const [row] = rows;
  return (row === undefined ? null : await toEvents(row)) ?? [];
}

/** Returns null if a value holds a separator. Of many events, requests and timers run between the columns and between parts. */
async function toEvents(row: EventColumns): Promise<StoredSourceEvent[] | null> {
  const columns: string[][] = [];
  for (const name of ["minutes", "ruleId", "ip", "asn", "country", "ja4", "ua", "url"] as const) {
    if (row.total >= MANY_EVENTS) await letOthersRun();
    const values = row[name].split(SEPARATOR);
    if (values.length !== row.total) return null;
    columns.push(values);
  }
  const [minutes, rules, ips, asns, countries, ja4s, uas, urls] = columns as Eight<string[]>;
  const events: StoredSourceEvent[] = [];
  for await (const part of inTurns(minutes))
    for (const minute of part) {
      const i = events.length;
      events.push({
        minute: Number(minute),
        ruleId: rules[i] as string,
        // A person who was erased has no address.
        ip: ips[i] === "erased" ? "" : (ips[i] as string),
        asn: asns[i] as string,
        country: countries[i] as string,
        ja4: ja4s[i] as string,
        ua: uas[i] as string,
        url: urls[i] as string,
      });
    }
  return events;
}

type Eight<T> = [T, T, T, T, T, T, T, T];

function toColumns(zones: readonly ZoneMinutes[]): number[][] {
  return [zones.map(({ zoneId }) => zoneId), zones.map(({ from }) => from), zones.map(({ to }) => to)];
}

function toAsked(zone: ZoneMinutes): SQL {
  const [zoneIds, from, to] = toColumns([zone]);
  return askedOf(sql.param(zoneIds), sql.param(from), sql.param(to));
}

type Parameter = ReturnType<typeof sql.param> | ReturnType<typeof sql.placeholder>;

function askedOf(zoneIds: Parameter, from: Parameter, to: Parameter): SQL {
  return sql`unnest(${zoneIds}::integer[], ${from}::float8[], ${to}::float8[])
    as asked(zone_id, from_minute, to_minute)`;
}

const IN_ASKED = sql`${e.occurredAt} >= to_timestamp(asked.from_minute * 60)
  and ${e.occurredAt} < to_timestamp(asked.to_minute * 60)`;

const PREPARED = toPrepared(
  "source-events",
  selectEvents(
    askedOf(sql.placeholder("zones"), sql.placeholder("from"), sql.placeholder("to")),
    sql`${sql.placeholder("limit")}::integer`,
  ),
);

/** SQL for the field by which a series names its sources, as the source series read it. */
const KEY_COLUMNS = {
  rules_per_ip: sql`left(${e.ip}, 300)`,
  ips_per_ja4: sql`left(${e.ja4}, 300)`,
  ips_per_url: sql`left(regexp_replace(split_part(split_part(${e.url}, '?', 1), '#', 1), '^[A-Za-z][A-Za-z0-9+.-]*://[^/]*', ''), 300)`,
  ips_per_ua: sql`left(${e.ua}, 300)`,
  ips_per_asn: sql`left(${e.asn}, 300)`,
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
  const isSource = isNetwork ? sql`${e.ip} like '%:%'` : sql`${KEY_COLUMNS[kind]} = ${key}`;
  const { rows } = await db.execute<{ ip: string | null; minute: number }>(sql`
    select ${isNetwork ? KEY_COLUMNS.rules_per_ip : sql`null::text`} as ip,
      floor(extract(epoch from min(${e.occurredAt})) / 60)::integer as minute
    from ${wafEvents} ${e} where ${e.zoneId} = ${zoneId} and ${isSource}
      and ${e.occurredAt} >= to_timestamp(${from}::float8 * 60)
      and ${e.occurredAt} < to_timestamp(${to}::float8 * 60)
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
    select asked.zone_id as "zoneId", first.minute from unnest(${sql.param(zoneIds)}::integer[]) as asked(zone_id)
    cross join lateral (
      select ${MINUTE} as minute from ${wafEvents} ${e}
      where ${e.zoneId} = asked.zone_id and ${e.occurredAt} >= to_timestamp(${from}::float8 * 60)
      order by ${e.occurredAt} limit 1) first`);
  return new Map(rows.map(({ zoneId, minute }) => [zoneId, minute]));
}

/** The events of a rule in the minutes [from, to). */
export interface RuleMinutes extends ZoneMinutes {
  readonly ruleId: string;
}

/** An address. Of most networks /64 of IPv6 it is always the first one, so that a sender with many of them hides no other. */
const SENDER = sql`coalesce(
  case when ${e.ip} like '%:%' then substring(${e.ip} from '^(?:[0-9A-Fa-f]{1,4}:){4}') || ':' end, left(${e.ip}, 300))`;

/** An address and its number of events. */
export interface AddressCount {
  readonly ip: string;
  readonly events: number;
}

/** More different addresses than this are not counted: no severity depends on them. */
const COUNTED_ADDRESSES = 200;

/**
 * Returns the addresses of each rule's events, the `limit` with most events at most, in the order in which rules are asked.
 * About one address of each IPv6 network (/64) is returned.
 */
export async function readAddressesOfRules(
  db: Queryable,
  asked: readonly RuleMinutes[],
  limit = COUNTED_ADDRESSES,
): Promise<AddressCount[][]> {
  if (asked.length === 0) return [];
  // Events without a rule count under ''. By itself each part can use the index on zone, rule and time.
  const ipsOf = (isRule: SQL) => sql`
    select ${SENDER} as ip from ${wafEvents} ${e}
    where ${e.zoneId} = asked.zone_id and ${isRule} and ${IN_ASKED} and ${e.ip} not in ('', 'erased')`;
  const column = <T>(read: (one: RuleMinutes) => T) => sql.param(asked.map(read));
  const { rows } = await db.execute<{ found: AddressCount[] }>(sql`
    select found.list as found from unnest(${column(({ zoneId }) => zoneId)}::integer[], ${column(({ ruleId }) => ruleId)}::text[],
      ${column(({ from }) => from)}::float8[], ${column(({ to }) => to)}::float8[])
      with ordinality as asked(zone_id, rule_id, from_minute, to_minute, place)
    cross join lateral (
      select coalesce(json_agg(json_build_object('ip', ip, 'events', events)), '[]'::json) as list from (
        select ip, count(*)::integer as events from (
          ${ipsOf(sql`${e.ruleId} = asked.rule_id`)}
          union all ${ipsOf(sql`asked.rule_id = '' and ${e.ruleId} is null`)}) each
        group by ip order by events desc limit ${limit}) different) found
    order by place`);
  return rows.map(({ found }) => found);
}
