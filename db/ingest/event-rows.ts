/** The values and facts that one row of an event lacks and another has. */

import { type Column, type SQL, sql } from "drizzle-orm";
import { toSnakeCase } from "drizzle-orm/casing";
import { alias } from "drizzle-orm/pg-core";
import type { FactColumns } from "#model/request-facts.ts";
import type { EventKey } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { ERASED_IP } from "../people/erase-events.ts";
import { names } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";
import { dirtyBuckets } from "../schema/ingest.ts";

/** The columns of an event that a look shows. Only a null of one of them, without the address, is filled. */
const FILLED_KEYS = [
  ...(["feature", "ruleId", "ja4", "ua", "url"] as const),
  ...(["asn", "country", "action", "message"] as const),
];

/** Their names in the database. */
export const FILLED = FILLED_KEYS.map(toSnakeCase);

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

/** The columns of stored, staged and held events that a look fills. */
export type Fillable = {
  readonly [Key in (typeof FILLED_KEYS)[number] | "occurredAt" | "logId" | "ip"]: Column;
};

/** Returns whether the row `given` has a dimension that the row `known` lacks, without the address. */
export function lacksOf(known: Fillable, given: Fillable): SQL {
  const lacks = FILLED_KEYS.map((key) => sql`(${known[key]} is null and ${given[key]} is not null)`);
  return sql.join(lacks, sql` or `);
}

/** Returns the assignments that copy to `known` the values that it lacks. */
export function fillOf(known: Fillable, given: Fillable): SQL {
  const fills = FILLED_KEYS.map((key) => sql`${names(known[key])} = coalesce(${known[key]}, ${given[key]})`);
  return sql.join(fills, sql`, `);
}

/**
 * Returns whether `given` has a better address than `known`: any address instead of none, a full one instead of a
 * masked one.
 */
export function unmasksOf(known: Fillable, given: Fillable): SQL {
  return sql`(${given.ip} is not null and (${known.ip} is null
    or (${known.ip} like '%*%' and ${given.ip} <> '' and ${given.ip} not like '%*%')))`;
}

/** Returns the statement that marks minutes as stale. Every writer locks them in the same order. */
export function markStale(zoneId: number, touched: SQL): SQL {
  const { ruleId, minute, marks } = dirtyBuckets;
  return sql`
    insert into ${dirtyBuckets} (${names(dirtyBuckets.zoneId, ruleId, minute)})
    select ${zoneId}, rule, minute from (${touched}) touched
    order by rule collate "C", minute
    on conflict (${names(dirtyBuckets.zoneId, ruleId, minute)}) do update set ${names(marks)} = ${marks} + 1`;
}
