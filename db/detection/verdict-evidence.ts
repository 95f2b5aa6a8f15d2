import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { classifyAction } from "#model/action-class.ts";
import type { ActionClass, UsualDimension } from "#model/kinds.ts";
import type { StoredAttacker } from "#model/stored-sources.ts";
import { toUrlPartSql } from "#model/url-parts.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { ruleBuckets } from "../schema/rule-buckets.ts";
import { verdicts } from "../schema/verdicts.ts";
import { wafEvents } from "../schema/waf-events.ts";
import { zoneUsual } from "../schema/zone-usual.ts";
import type { SpikeRow } from "./spikes.ts";

const e = alias(wafEvents, "e");
const b = alias(ruleBuckets, "b");
const u = alias(zoneUsual, "u");
const v = alias(verdicts, "v");

const MOST_EVENTS = 5_000;
/** The newest events of a zone among which those of attackers are looked for: no index knows them. */
const MOST_READ = 50_000;
/** The newest events of a zone's day among which those of the alert's addresses are looked for. */
const MOST_NEARBY = 60_000;
const MOST_KEYS = 100;
/** A month and some days: what is usual is learnt from as much. */
export const USUAL_MS = 40 * DAY_MS;
const IPV6_SENDER = /::\/64$/;

/** The events of an alert in [from, to), epoch ms. */
export interface AlertSpan {
  readonly spike: Pick<SpikeRow, "zoneId" | "ruleId" | "sources">;
  readonly from: number;
  readonly to: number;
}

function inZone({ zoneId }: AlertSpan["spike"], from: number, to: number): SQL {
  return sql`${e.zoneId} = ${zoneId} and ${e.occurredAt} >= to_timestamp(${from}::float8 / 1000)
    and ${e.occurredAt} < to_timestamp(${to}::float8 / 1000)`;
}

/** Returns the newest events of a zone, newest first, `limit` at most. */
function newestEvents(spike: AlertSpan["spike"], from: number, to: number, limit: number): SQL {
  return sql`(select * from ${wafEvents} ${e} where ${inZone(spike, from, to)}
    order by ${e.occurredAt} desc limit ${limit}) ${e}`;
}

/** Returns the alert's events as a table `e`, newest first: of its rule, or of its attackers among the zone's newest. */
function alertEvents({ spike, from, to }: AlertSpan, limit: number): SQL {
  const { ruleId, sources } = spike;
  const isRule = ruleId === "" ? sql`coalesce(${e.ruleId}, '') = ''` : sql`${e.ruleId} = ${ruleId}`;
  const [source, isOfAlert] =
    sources === null
      ? [sql`${wafEvents} ${e}`, sql`${isRule} and ${inZone(spike, from, to)}`]
      : [newestEvents(spike, from, to, MOST_READ), isOfAttackers(sources.findings)];
  return sql`(select * from ${source} where ${isOfAlert} order by ${e.occurredAt} desc limit ${limit}) ${e}`;
}

const PATH = sql.raw(`left(${toUrlPartSql("path", "e.url")}, 300)`);
const HEAD = sql`split_part(split_part(${e.url}, '?', 1), '#', 1)`;
const KEY_OF = {
  rules_per_ip: e.ip,
  ips_per_ja4: e.ja4,
  ips_per_asn: e.asn,
  ips_per_ua: sql`left(${e.ua}, 300)`,
};

/** Returns the condition for the events of these attackers, whose keys are made as the source series make them. */
function isOfAttackers(attackers: readonly Pick<StoredAttacker, "kind" | "key">[]): SQL {
  // A person who was erased has no address; the events of all of them would match.
  const named = attackers.filter(({ key }) => key !== "" && key !== "erased").slice(0, MOST_KEYS);
  const tests = Array.from(
    Map.groupBy(named, ({ kind }) => kind),
    ([kind, ofKind]) => {
      const keys = ofKind.map(({ key }) => key);
      // The end of the URL rules most events out for a fraction of what finding their path costs.
      if (kind === "ips_per_url")
        return sql`${HEAD} like any(${sql.param(keys.map(toEnding))}::text[]) and ${PATH} = any(${sql.param(keys)}::text[])`;
      const networks = kind === "rules_per_ip" ? keys.filter((key) => IPV6_SENDER.test(key)) : [];
      const isKey = sql`${KEY_OF[kind]} = any(${sql.param(keys)}::text[])`;
      if (networks.length === 0) return isKey;
      return sql`${isKey} or strpos(${e.ip}, ':') > 0 and event_network(${e.ip}) <<= any(${sql.param(networks)}::inet[])`;
    },
  );
  return tests.length === 0 ? sql`false` : sql`(${sql.join(tests, sql` or `)})`;
}

/** Returns the pattern of LIKE for URLs without query whose path is the key, and some others. */
function toEnding(key: string): string {
  const text = key.replaceAll(/[\\%_]/g, "\\$&");
  return key.length < 300 ? `%${text}` : `%${text}%`;
}

/** An event of an alert; a text that is not known is empty. */
export interface AlertEvent {
  readonly at: number;
  readonly logId: string;
  readonly ruleId: string;
  readonly ip: string;
  readonly asn: string;
  readonly ja4: string;
  readonly ua: string;
  readonly url: string;
  readonly action: ActionClass;
  readonly feature: string;
}

/** Returns the newest 5,000 events of an alert, the newest first. */
export async function readAlertEvents(db: Queryable, span: AlertSpan): Promise<AlertEvent[]> {
  const text = (column: SQLWrapper, chars = 300) =>
    sql`coalesce(left(${column}, ${sql.raw(String(chars))}), '')`;
  const { rows } = await db.execute<{ [Key in keyof AlertEvent]: AlertEvent[Key] }>(sql`
    select ${epochMs(e.occurredAt)} as at, ${e.logId} as "logId", ${text(e.ruleId)} as "ruleId",
      case when ${e.ip} = 'erased' then '' else ${text(e.ip)} end as ip, ${text(e.asn)} as asn, ${text(e.ja4)} as ja4,
      ${text(e.ua)} as ua, ${text(e.url, 1_024)} as url, ${e.action} as action, ${text(e.feature)} as feature
    from ${alertEvents(span, MOST_EVENTS)}`);
  return rows.map((row) => ({ ...row, action: classifyAction(row.action) }));
}

/** A rule that an address triggered, with the first and the last of the paths by byte order. */
export interface AddressRule {
  readonly ip: string;
  readonly ruleId: string;
  readonly paths: readonly [string, string];
}

/** Returns the rules that these addresses triggered in the zone within 24 hours before `to`. */
export async function readNearbyRules(
  db: Queryable,
  { spike, to }: Pick<AlertSpan, "spike" | "to">,
  ips: readonly string[],
): Promise<AddressRule[]> {
  const { rows } = await db.execute<{ [Key in keyof AddressRule]: AddressRule[Key] }>(sql`
    select ip, rule_id as "ruleId", array[min(path collate "C"), max(path collate "C")] as paths from (
      select ${e.ip}, coalesce(${e.ruleId}, '') as rule_id, coalesce(${PATH}, '') as path
      from ${newestEvents(spike, to - DAY_MS, to, MOST_NEARBY)} where ${e.ip} = any(${sql.param([...ips])}::text[])) found
    group by 1, 2 order by 1, 2`);
  return rows;
}

/**
 * Returns the events of the last two hours relative to those of the alert's first two hours, which begin with the window
 * that opened it; null if those had none.
 */
export async function readLasting(
  db: Queryable,
  {
    spike,
    openedAt,
    to,
  }: { spike: AlertSpan["spike"] & Pick<SpikeRow, "windowMinutes">; openedAt: number; to: number },
): Promise<number | null> {
  const start = openedAt - spike.windowMinutes * MINUTE_MS;
  const count = ({ from, to: end }: { from: number; to: number }) =>
    spike.sources === null
      ? sql`(select coalesce(sum(${b.total}), 0)::float8 from ${ruleBuckets} ${b} where ${b.zoneId} = ${spike.zoneId}
          and ${b.ruleId} = ${spike.ruleId} and ${b.width} = 60 and ${b.startsAt} >= to_timestamp(${from}::float8 / 1000)
          and ${b.startsAt} < to_timestamp(${end}::float8 / 1000))`
      : sql`(select count(*)::float8 from ${alertEvents({ spike, from, to: end }, MOST_READ)})`;
  const { rows } = await db.execute<{ first: number; last: number }>(sql`
    select ${count({ from: start, to: start + 2 * HOUR_MS })} as first, ${count({ from: to - 2 * HOUR_MS, to })} as last`);
  const { first = 0, last = 0 } = rows[0] ?? {};
  return first === 0 ? null : last / first;
}

export interface ZoneUsual {
  readonly values: Readonly<Partial<Record<UsualDimension, readonly string[]>>>;
  /** Whole days with events before the time. */
  readonly days: number;
  /** Whether a record that a verdict of the last weeks has read had a session. */
  readonly hadSession: boolean;
}

/** Returns what was usual in a zone before a time. */
export async function readZoneUsual(db: Queryable, zoneId: number, beforeMs: number): Promise<ZoneUsual> {
  const before = sql`to_timestamp(${beforeMs}::float8 / 1000)`;
  const since = sql`to_timestamp(${beforeMs - USUAL_MS}::float8 / 1000)`;
  const { rows } = await db.execute<{ [Key in keyof ZoneUsual]: ZoneUsual[Key] }>(sql`
    select coalesce((select json_object_agg(dimension, list) from (
        select ${u.dimension}, json_agg(${u.value}) as list from ${zoneUsual} ${u}
        where ${u.zoneId} = ${zoneId} and ${u.since} < ${before} group by 1) each), '{}') as values,
      (select count(distinct ${b.startsAt})::integer from ${ruleBuckets} ${b} where ${b.zoneId} = ${zoneId}
        and ${b.width} = 86400 and ${b.startsAt} >= ${since} and ${b.startsAt} + interval '1 day' <= ${before}) as days,
      exists (select from ${verdicts} ${v} where ${v.zoneId} = ${zoneId} and ${v.judgedAt} >= ${since}
        and (${v.verdict} #>> '{features,session,value}')::float8 > 0) as "hadSession"`);
  return rows[0] ?? { values: {}, days: 0, hadSession: false };
}
