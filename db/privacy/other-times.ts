import { sql } from "drizzle-orm";
import type { EventKey } from "#model/event-key.ts";
import { readOtherTimes } from "../archive/archive-records.ts";
import type { Queryable } from "../client.ts";

/** Returns the keys under which records of these events may be kept: the events' own keys and those of their aliases. */
export async function addOtherTimes(
  tx: Queryable,
  zoneId: number,
  events: readonly EventKey[],
): Promise<EventKey[]> {
  if (events.length === 0) return [];
  const others = await readOtherTimes(tx, zoneId, events);
  const aliases = others.flatMap(({ index, occurredAt }) => {
    const event = events[index];
    return event === undefined ? [] : [{ logId: event.logId, occurredAt }];
  });
  return [...events, ...aliases];
}

/** Returns the stored keys of the events that have an alias in a time span (epoch ms, both ends included). */
export async function readKeptTimes(
  tx: Queryable,
  zoneId: number,
  { firstAt, lastAt }: { firstAt: number; lastAt: number },
): Promise<EventKey[]> {
  const { rows } = await tx.execute<EventKey & Record<string, unknown>>(sql`
    select (extract(epoch from kept_at) * 1000)::float8 as "occurredAt", log_id as "logId" from event_aliases
    where zone_id = ${zoneId} and other_at between ${new Date(firstAt)} and ${new Date(lastAt)}`);
  return rows;
}
