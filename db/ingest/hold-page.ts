import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { ERASED_IP } from "../privacy/erase-events.ts";
import { heldBlocks } from "../schema/held-blocks.ts";
import { EVENT_COLUMNS } from "./event-rows.ts";
import type { NewRawBlock } from "./raw-blocks.ts";
import { fillOf, lacksOf, unmasksOf } from "./store-events.ts";

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
  const changes = sql.raw(`${lacksOf("e", "s")} or ${unmasksOf("e", "s")}`);
  const { rows } = await tx.execute<{ moved: number; added: number }>(sql`
    with moved as (
      delete from staged_events s
      where s.occurred_at <= ${new Date(untilMs)} and not exists (
        select from waf_events e
        where e.zone_id = ${zoneId} and e.occurred_at = s.occurred_at and e.log_id = s.log_id
          and e.occurred_at <= ${new Date(untilMs)} and not (${changes}))
      returning s.*),
    entered as (
      insert into held_events as h (${sql.raw(EVENT_COLUMNS)})
      select distinct on (zone_id, occurred_at, log_id) ${sql.raw(EVENT_COLUMNS)} from moved
      order by zone_id, occurred_at, log_id
      on conflict (zone_id, occurred_at, log_id) do update set ${sql.raw(fillOf("h", "excluded"))},
        ip = case when ${sql.raw(unmasksOf("h", "excluded"))} then excluded.ip else h.ip end
      where ${sql.raw(`${lacksOf("h", "excluded")} or ${unmasksOf("h", "excluded")}`)}
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
  const isMeant = sql`s.occurred_at <= ${new Date(untilMs)}`;
  const isStored = sql`exists (select from waf_events e where e.zone_id = ${zoneId}
    and e.occurred_at = s.occurred_at and e.log_id = s.log_id and e.occurred_at <= ${new Date(untilMs)})`;
  await tx.execute(sql`
    update staged_events s set ip = null, ja4 = null, ua = null, url = null, message = null
    where ${isMeant} and ${isStored}`);
  await tx.execute(sql`
    update staged_events s set ip = ${ERASED_IP}, ja4 = '', ua = '', url = '', message = ''
    where ${isMeant} and not ${isStored}`);
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
