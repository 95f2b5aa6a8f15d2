import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { EventKey } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { ERASED_IP } from "../people/erase-events.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";
import { lacksOf, unmasksOf } from "./store-events.ts";

const e = alias(wafEvents, "e");
/** Staged events: a temporary table with the columns of `waf_events`. */
const s = alias(wafEvents, "s");

interface StagedSpan {
  readonly zoneId: number;
  /** Only events up to this time; epoch ms. */
  readonly untilMs: number;
}

/**
 * Removes the staged events up to `untilMs` and returns their keys. An event that is stored and that the page would not
 * change stays staged, because it was judged before.
 */
export async function takeStaged(tx: Queryable, { zoneId, untilMs }: StagedSpan): Promise<EventKey[]> {
  const { rows } = await tx.execute<{ occurredAt: number; logId: string }>(sql`
    delete from staged_events s
    where ${s.occurredAt} <= ${new Date(untilMs)} and not exists (
      ${selectStored({ zoneId, untilMs })} and not (${lacksOf(e, s)} or ${unmasksOf(e, s)}))
    returning ${epochMs(sql`${s.occurredAt}`)} as "occurredAt", ${s.logId} as "logId"`);
  return rows;
}

/**
 * Removes all personal data from staged events up to `untilMs`, because nothing can decide any more which of them an
 * erasure covers. A new event is staged as an erased one. A stored event keeps its values and gains only values that
 * say nothing about a person.
 */
export async function blankStaged(tx: Queryable, { zoneId, untilMs }: StagedSpan): Promise<void> {
  const isMeant = sql`${s.occurredAt} <= ${new Date(untilMs)}`;
  const isStored = sql`exists (${selectStored({ zoneId, untilMs })})`;
  const { ip, ja4, ua, url, message, requestId, matchedKey } = wafEvents;
  const personal = [ja4, ua, url, message, requestId];
  const setAll = (value: "null" | "''") =>
    sql.join(
      personal.map((column) => sql`${names(column)} = ${sql.raw(value)}`),
      sql`, `,
    );
  await tx.execute(sql`
    update staged_events s set ${names(ip)} = null, ${names(matchedKey)} = null, ${setAll("null")} where ${isMeant} and ${isStored}`);
  await tx.execute(sql`
    update staged_events s set ${names(ip)} = ${ERASED_IP}, ${names(matchedKey)} = null, ${setAll("''")} where ${isMeant} and not ${isStored}`);
}

/** Returns the query for the stored event of a staged one. */
function selectStored({ zoneId, untilMs }: StagedSpan) {
  return sql`select from ${wafEvents} e
    where ${e.zoneId} = ${zoneId} and ${e.occurredAt} = ${s.occurredAt} and ${e.logId} = ${s.logId}
      and ${e.occurredAt} <= ${new Date(untilMs)}`;
}
