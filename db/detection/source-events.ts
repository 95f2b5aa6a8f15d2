import { sql } from "drizzle-orm";
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

/** Minutes per statement, and the most events that are read of them. More of a flood would not change its counts. */
const SLICE_MINUTES = 5;
export const SLICE_EVENTS = 100_000;

/**
 * Yields the events of the minutes [from, to) in the order of time, with what the source series read of them. A
 * person who was erased has no address.
 */
export async function* readSourceEvents(
  db: Queryable,
  { zoneId, from, to }: { zoneId: number; from: number; to: number },
): AsyncGenerator<readonly StoredSourceEvent[]> {
  for (let start = from; start < to; start += SLICE_MINUTES) {
    const end = Math.min(start + SLICE_MINUTES, to);
    const { rows } = await db.execute<StoredSourceEvent & Record<string, unknown>>(sql`
      select floor(extract(epoch from occurred_at) / 60)::integer as minute, left(rule_id, 300) as "ruleId",
        nullif(left(ip, 300), 'erased') as ip, left(asn, 300) as asn, left(country, 300) as country,
        left(ja4, 300) as ja4, left(ua, 300) as ua, left(url, 1024) as url
      from ${wafEvents} where zone_id = ${zoneId}
        and occurred_at >= to_timestamp(${start}::float8 * 60) and occurred_at < to_timestamp(${end}::float8 * 60)
      order by occurred_at limit ${SLICE_EVENTS}`);
    if (rows.length > 0) yield rows;
  }
}

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

/** Returns the minute of the zone's first event from `from` on; null without any. */
export async function readFirstEventMinute(
  db: Queryable,
  zoneId: number,
  from: number,
): Promise<number | null> {
  const { rows } = await db.execute<{ minute: number | null }>(sql`
    select floor(extract(epoch from min(occurred_at)) / 60)::integer as minute from ${wafEvents}
    where zone_id = ${zoneId} and occurred_at >= to_timestamp(${from}::float8 * 60)`);
  return rows[0]?.minute ?? null;
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
