/** The rows of events, and the facts that are learnt later. */

import { type Column, type SQL, sql } from "drizzle-orm";
import { toSnakeCase } from "drizzle-orm/casing";
import { alias } from "drizzle-orm/pg-core";
import type { FactColumns } from "#model/request-facts.ts";
import type { EventKey, WafEvent } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { ERASED_IP } from "../people/erase-events.ts";
import { createTimeWriter, toCopyField } from "../postgres/copy.ts";
import { names } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";

/** The columns of `toEventRows`, in the same order. */
export const EVENT_COLUMNS = [
  ...(["occurredAt", "zoneId", "logId", "route", "feature", "ruleId", "ip"] as const),
  ...(["ja4", "ua", "url", "asn", "country", "action", "message"] as const),
  ...(["method", "requestId", "matchedKey", "facts"] as const),
]
  .map((key) => toSnakeCase(wafEvents[key].name))
  .join(", ");

/** The columns of an event that a look shows. Only a null of one of them, without the address, is filled. */
export const FILLED_KEYS = [
  ...(["feature", "ruleId", "ja4", "ua", "url"] as const),
  ...(["asn", "country", "action", "message"] as const),
];

/** Their names in the database. */
export const FILLED = FILLED_KEYS.map(toSnakeCase);

/** Returns events in COPY's text format. */
export function toEventRows(zoneId: number, events: readonly WafEvent[]): string {
  const toTime = createTimeWriter();
  let rows = "";
  for (const e of events) rows += toRow(zoneId, e, toTime(e.occurredAt));
  return rows;
}

/** Written out, because a list of fields would take three times as long. */
function toRow(zoneId: number, e: WafEvent, time: string): string {
  const [id, feature, rule, ip] = [
    toCopyField(e.logId),
    toCopyField(e.feature),
    toCopyField(e.ruleId),
    toCopyField(e.ip),
  ];
  const [ja4, ua, url, asn] = [toCopyField(e.ja4), toCopyField(e.ua), toCopyField(e.url), toCopyField(e.asn)];
  const [country, action, message] = [toCopyField(e.country), toCopyField(e.action), toCopyField(e.message)];
  const [method, request] = [toCopyField(e.method), toCopyField(e.requestId)];
  return `${time}\t${zoneId}\t${id}\t${e.route}\t${feature}\t${rule}\t${ip}\t${ja4}\t${ua}\t${url}\t${asn}\t${country}\t${action}\t${message}\t${method}\t${request}\t${e.matchedKey ?? "\\N"}\t${e.facts ?? "\\N"}\n`;
}

const e = alias(wafEvents, "e");
const n = alias(wafEvents, "n");

/** The columns of stored, staged and held events that hold facts, and the address. */
type Learnable = Readonly<Record<keyof FactColumns | "ip", Column>>;

/** Returns whether the row `given` has a fact that the row `known` lacks. Is never null. */
export function learnsOf(known: Learnable, given: Learnable): SQL {
  const { method, requestId, matchedKey, facts } = known;
  return sql`((${method} is null and ${given.method} is not null)
    or (${requestId} is null and ${given.requestId} is not null and ${isPerson(known)})
    or (${matchedKey} is null and ${given.matchedKey} is not null and ${isPerson(known)})
    or coalesce(${given.facts}, 0) & ~coalesce(${facts}, 0::smallint) <> 0)`;
}

/**
 * Returns the assignments that add the facts of `given` to `known`. A fact that any record shows is true, so the order in
 * which records arrive does not matter.
 */
export function learnOf(known: Learnable, given: Learnable): SQL {
  const { method, requestId, matchedKey, facts } = known;
  const ifPerson = (column: Column, other: Column) =>
    sql`${names(column)} = case when ${isPerson(known)} then coalesce(${column}, ${other}) else ${column} end`;
  return sql`${names(method)} = coalesce(${method}, ${given.method}), ${ifPerson(requestId, given.requestId)},
    ${ifPerson(matchedKey, given.matchedKey)},
    ${names(facts)} = coalesce(${facts} | ${given.facts}, ${facts}, ${given.facts})`;
}

/** False for an event whose person was erased or has a pseudonym: nothing that leads to a person is added to it. */
function isPerson({ ip }: Learnable): SQL {
  return sql`coalesce(${ip} <> ${sql.raw(`'${ERASED_IP}'`)} and ${ip} not like 'anon-%', true)`;
}

/** Adds facts to stored events: those of rows under another time, which are not stored. */
export async function learnFacts(
  tx: Queryable,
  zoneId: number,
  found: readonly (EventKey & FactColumns)[],
): Promise<void> {
  if (found.length === 0) return;
  const times = found.map(({ occurredAt }) => occurredAt);
  const listOf = (key: keyof (EventKey & FactColumns), type: string) =>
    sql`${sql.param(found.map((one) => one[key]))}::${sql.raw(type)}[]`;
  await tx.execute(sql`
    update ${wafEvents} ${e} set ${learnOf(e, n)}
    from (select to_timestamp(at / 1000)::timestamptz(3) as occurred_at, log_id, null::text as ip, method, request_id,
        matched_key, facts
      from unnest(${listOf("occurredAt", "float8")}, ${listOf("logId", "text")}, ${listOf("method", "text")},
        ${listOf("requestId", "text")}, ${listOf("matchedKey", "integer")}, ${listOf("facts", "smallint")})
        as given(at, log_id, method, request_id, matched_key, facts)) ${n}
    where ${e.zoneId} = ${zoneId} and ${e.occurredAt} = ${n.occurredAt} and ${e.logId} = ${n.logId} and ${learnsOf(e, n)}
      and ${e.occurredAt} between ${new Date(Math.min(...times))} and ${new Date(Math.max(...times))}`);
}
