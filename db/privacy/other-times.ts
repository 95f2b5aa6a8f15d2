import { and, between, eq } from "drizzle-orm";
import type { EventKey } from "#model/waf-event.ts";
import { readOtherTimes } from "../archive/read-files.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { eventAliases } from "../schema/events.ts";

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
export function readKeptTimes(
  tx: Queryable,
  zoneId: number,
  { firstAt, lastAt }: { firstAt: number; lastAt: number },
): Promise<EventKey[]> {
  const { keptAt, otherAt, logId } = eventAliases;
  return tx
    .select({ occurredAt: epochMs(keptAt), logId })
    .from(eventAliases)
    .where(and(eq(eventAliases.zoneId, zoneId), between(otherAt, new Date(firstAt), new Date(lastAt))));
}
