import { type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { ActionStates } from "#model/action-class.ts";
import type { ActionClass, UsualDimension } from "#model/kinds.ts";
import { toUrlPartSql } from "#model/record-parts.ts";
import { type FactColumns, type RequestFacts, toRequestFacts } from "#model/request-facts.ts";
import type { StoredSources } from "#model/stored-sources.ts";
import { MOST_EVENTS } from "#model/verdict.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { zoneUsual } from "../schema/sources.ts";
import { verdicts } from "../schema/spikes.ts";
import { isOfRule } from "./spike-evidence.ts";
import type { SpikeRow } from "./spikes.ts";

const e = alias(wafEvents, "e");
const b = alias(ruleBuckets, "b");
const u = alias(zoneUsual, "u");
const v = alias(verdicts, "v");

/** The newest events of a zone among which those of attackers, and of addresses, are looked for. No index knows them. */
const MOST_READ = 50_000;
const MOST_KEYS = 100;
/** The usual values of a zone are learnt from the events of this time. */
export const USUAL_MS = 40 * DAY_MS;
const IPV6_SENDER = /::\/64$/;

type AlertSpike = Pick<SpikeRow, "zoneId" | "ruleId" | "sources">;

/** The events of an alert in [from, to), epoch ms. */
export interface AlertSpan {
  readonly spike: AlertSpike;
  readonly from: number;
  readonly to: number;
}

const moment = (ms: number) => sql`to_timestamp(${ms}::float8 / 1000)`;

/** Returns the newest events of a zone that pass a condition as the table `e`, newest first. */
function newest({ spike, from, to }: AlertSpan, condition: SQL, limit: number): SQL {
  return sql`(select * from ${wafEvents} ${e} where ${e.zoneId} = ${spike.zoneId} and ${e.occurredAt} >= ${moment(from)}
    and ${e.occurredAt} < ${moment(to)} and ${condition} order by ${e.occurredAt} desc limit ${limit}) ${e}`;
}

/** Returns the newest events of an alert as the table `e`: of its rule, or of its attackers among the zone's newest. */
function alertEvents(span: AlertSpan, limit: number): SQL {
  const { ruleId, sources } = span.spike;
  if (sources === null) return newest(span, isOfRule(e.ruleId, ruleId), limit);
  return sql`(select * from ${newest(span, sql`true`, MOST_READ)} where ${isOfAttackers(sources.findings)}
    order by ${e.occurredAt} desc limit ${limit}) ${e}`;
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
function isOfAttackers(attackers: StoredSources["findings"]): SQL {
  // A person who was erased has no address; the events of all of them would match.
  const named = attackers.filter(({ key }) => key !== "" && key !== "erased").slice(0, MOST_KEYS);
  const tests = Array.from(
    Map.groupBy(named, ({ kind }) => kind),
    ([kind, ofKind]) => {
      const keys = ofKind.map(({ key }) => key);
      const isOneOf = sql`= any(${sql.param(keys)}::text[])`;
      // The end of the URL rules most events out for a fraction of what finding their path costs.
      if (kind === "ips_per_url")
        return sql`${HEAD} like any(${sql.param(keys.map(toEnding))}::text[]) and ${PATH} ${isOneOf}`;
      const networks = kind === "rules_per_ip" ? keys.filter((key) => IPV6_SENDER.test(key)) : [];
      if (networks.length === 0) return sql`${KEY_OF[kind]} ${isOneOf}`;
      return sql`${KEY_OF[kind]} ${isOneOf}
      or strpos(${e.ip}, ':') > 0 and event_network(${e.ip}) <<= any(${sql.param(networks)}::inet[])`;
    },
  );
  return tests.length === 0 ? sql`false` : sql`(${sql.join(tests, sql` or `)})`;
}

/** Returns the pattern of LIKE for URLs without query whose path is the key, and some others. */
function toEnding(key: string): string {
  const text = key.replaceAll(/[\\%_]/g, "\\$&");
  return key.length < 300 ? `%${text}` : `%${text}%`;
}

type Texts = Record<"logId" | "ruleId" | "ip" | "asn" | "ja4" | "ua" | "url" | "feature", string>;
/** A text that is not known is empty. */
export type AlertEvent = Readonly<Texts & { at: number; action: ActionClass; facts: RequestFacts | null }>;

/** Returns the newest 5,000 events of an alert, the newest first. */
export async function readAlertEvents(
  db: Queryable,
  span: AlertSpan,
  actions: ActionStates,
): Promise<AlertEvent[]> {
  return readEvents(db, alertEvents(span, MOST_EVENTS), actions);
}

/**
 * Returns the events of other rules that the requests of a rule's alert have, among the newest events of the zone: of requests with
 * these ids, and of these addresses where nothing names the request.
 */
export async function readOtherEvents(
  db: Queryable,
  span: AlertSpan,
  events: readonly AlertEvent[],
  actions: ActionStates,
): Promise<AlertEvent[]> {
  if (span.spike.sources !== null || events.length === 0) return [];
  const ids = events.flatMap(({ facts }) => facts?.requestId || []);
  const unnamed = events.filter(({ facts }) => !facts?.requestId).map(({ ip }) => ip);
  const param = (texts: readonly string[]) => sql`${sql.param([...new Set(texts)])}::text[]`;
  return readEvents(
    db,
    sql`(select * from ${newest(span, sql`true`, MOST_READ)} where not (${isOfRule(e.ruleId, span.spike.ruleId)})
      and (${e.requestId} = any(${param(ids)}) or coalesce(${e.requestId}, '') = '' and ${e.ip} = any(${param(unnamed)}))
      limit ${4 * MOST_EVENTS}) ${e}`,
    actions,
  );
}

async function readEvents(db: Queryable, from: SQL, { classify }: ActionStates): Promise<AlertEvent[]> {
  const text = (column: SQLWrapper, chars = 300) =>
    sql`coalesce(left(${column}, ${sql.raw(String(chars))}), '')`;
  type Row = Texts & FactColumns & { at: number; action: string | null };
  const { rows } = await db.execute<Row & Record<string, unknown>>(sql`
    select ${epochMs(e.occurredAt)} as at, ${e.logId} as "logId", ${text(e.ruleId)} as "ruleId",
      case when ${e.ip} = 'erased' then '' else ${text(e.ip)} end as ip, ${text(e.asn)} as asn, ${text(e.ja4)} as ja4,
      ${text(e.ua)} as ua, ${text(e.url, 1_024)} as url, ${e.action} as action, ${text(e.feature)} as feature,
      ${e.method} as method, ${e.requestId} as "requestId", ${e.matchedKey} as "matchedKey", ${e.facts} as facts
    from ${from}`);
  return rows.map(({ method, requestId, matchedKey, facts, ...row }) => ({
    ...row,
    action: classify(row.action),
    facts: toRequestFacts({ method, requestId, matchedKey, facts }),
  }));
}

/**
 * Returns the rules that these addresses triggered in the zone within 24 hours before `to`, each with the first and the last
 * of its paths by byte order: an address may have a million.
 */
export async function readNearbyRules(
  db: Queryable,
  { spike, to }: Pick<AlertSpan, "spike" | "to">,
  ips: readonly string[],
): Promise<{ ip: string; ruleId: string; paths: string[] }[]> {
  const { rows } = await db.execute<{ ip: string; ruleId: string; paths: string[] }>(sql`
    select ip, rule_id as "ruleId", array[min(path collate "C"), max(path collate "C")] as paths from (
      select ${e.ip}, coalesce(${e.ruleId}, '') as rule_id, coalesce(${PATH}, '') as path
      from ${newest({ spike, from: to - DAY_MS, to }, sql`true`, MOST_READ)}
      where ${e.ip} = any(${sql.param([...ips])}::text[])) found
    group by 1, 2 order by 1, 2`);
  return rows;
}

/**
 * Returns the events of the last two hours relative to those of the alert's first two hours, which begin with the window
 * that opened it; null if those had none.
 */
export async function readLasting(
  db: Queryable,
  spike: AlertSpike & Pick<SpikeRow, "windowMinutes" | "openedAt">,
  nowMs: number,
): Promise<number | null> {
  const start = spike.openedAt.getTime() - spike.windowMinutes * MINUTE_MS;
  const countFrom = (from: number) =>
    sql`(select count(*)::float8 from ${alertEvents({ spike, from, to: from + 2 * HOUR_MS }, MOST_READ)})`;
  const { rows } = await db.execute<{ share: number | null }>(
    sql`select ${countFrom(nowMs - 2 * HOUR_MS)} / nullif(${countFrom(start)}, 0) as share`,
  );
  return rows[0]?.share ?? null;
}

/** The events that the senders of an alert sent before it. */
export interface UsualSenders {
  /** For each address, the largest number of events in an hour of the 24 hours before. */
  readonly perAddress: readonly { readonly ip: string; readonly most: number }[];
  /** Events of the rule in an hour of these, on average; null for an incident. */
  readonly perHour: number | null;
}

/** Returns what these addresses sent in the 24 hours before a time: of the alert's rule, or of any rule for an incident. */
export async function readUsualSenders(
  db: Queryable,
  { zoneId, ruleId, sources }: AlertSpike,
  before: number,
  ips: readonly string[],
): Promise<UsualSenders> {
  const hour = Math.floor(before / HOUR_MS) * HOUR_MS;
  const isOfAlert = sources === null ? isOfRule(e.ruleId, ruleId) : sql`true`;
  const span = { spike: { zoneId, ruleId, sources }, from: hour - DAY_MS, to: hour };
  const { rows } = await db.execute<{ ip: string; most: number }>(sql`
    select ip, max(events)::float8 as most from (
      select ${e.ip}, count(*) as events from ${newest(span, isOfAlert, MOST_READ)}
      where ${e.ip} = any(${sql.param([...ips])}::text[]) group by 1, date_trunc('hour', ${e.occurredAt})) each
    group by 1`);
  if (sources !== null) return { perAddress: rows, perHour: null };
  const [total] = (
    await db.execute<{ events: number }>(sql`
      select coalesce(sum(${b.total}), 0)::float8 as events from ${ruleBuckets} ${b}
      where ${b.zoneId} = ${zoneId} and ${b.ruleId} = ${ruleId} and ${b.width} = 3600
        and ${b.startsAt} >= ${moment(hour - DAY_MS)} and ${b.startsAt} < ${moment(hour)}`)
  ).rows;
  return { perAddress: rows, perHour: (total?.events ?? 0) / (DAY_MS / HOUR_MS) };
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
  const [before, since] = [moment(beforeMs), moment(beforeMs - USUAL_MS)];
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
