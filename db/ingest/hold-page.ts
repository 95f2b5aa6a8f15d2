import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { ERASED_IP } from "../privacy/erase-events.ts";
import { wafEvents } from "../schema/events.ts";
import { heldBlocks } from "../schema/held-blocks.ts";
import { heldEvents } from "../schema/held-events.ts";
import { EVENT_COLUMNS, learnOf, learnsOf } from "./event-rows.ts";
import type { NewRawBlock } from "./raw-blocks.ts";
import { fillOf, lacksOf, unmasksOf } from "./store-events.ts";

const e = alias(wafEvents, "e");
/** Staged events: a temporary table with the columns of `waf_events`. */
const s = alias(wafEvents, "s");
const h = alias(heldEvents, "h");
const KEY = names(heldEvents.zoneId, heldEvents.occurredAt, heldEvents.logId);
const COLUMNS = sql.raw(EVENT_COLUMNS);

interface StagedSpan {
  readonly zoneId: number;
  /** Only events up to this time; epoch ms. */
  readonly untilMs: number;
}

export interface HeldStaged {
  /** Rows that were removed from the staged events. */
  readonly moved: number;
  /** Moved rows that were not held before. */
  readonly added: number;
}

/**
 * Moves staged events up to `untilMs` to held_events. An event that is stored and that the page would not change
 * stays staged, because it was judged before. An event that is already held gains the values that it lacks.
 */
export async function holdStaged(tx: Queryable, { zoneId, untilMs }: StagedSpan): Promise<HeldStaged> {
  const given = alias(heldEvents, "excluded");
  const { rows } = await tx.execute<{ moved: number; added: number }>(sql`
    with moved as (
      delete from staged_events s
      where ${s.occurredAt} <= ${new Date(untilMs)} and not exists (
        ${selectStored({ zoneId, untilMs })} and not (${lacksOf(e, s)} or ${unmasksOf(e, s)}))
      returning s.*),
    entered as (
      insert into ${heldEvents} as h (${COLUMNS})
      select distinct on (${KEY}) ${COLUMNS} from moved order by ${KEY}
      on conflict (${KEY}) do update set ${fillOf(h, given)}, ${learnOf(h, given)},
        ${names(h.ip)} = case when ${unmasksOf(h, given)} then ${given.ip} else ${h.ip} end
      where ${lacksOf(h, given)} or ${unmasksOf(h, given)} or ${learnsOf(h, given)}
      returning xmax = 0 as is_new)
    select (select count(*) from moved)::integer as moved,
      (select count(*) from entered where is_new)::integer as added`);
  return rows[0] ?? { moved: 0, added: 0 };
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

export async function insertHeldBlocks(
  tx: Queryable,
  zoneId: number,
  blocks: readonly NewRawBlock[],
): Promise<void> {
  if (blocks.length === 0) return;
  const rows = blocks.map(({ firstAt, lastAt, ...block }) => ({
    zoneId,
    ...block,
    firstAt: new Date(firstAt),
    lastAt: new Date(lastAt),
  }));
  await tx.insert(heldBlocks).values(rows);
}
