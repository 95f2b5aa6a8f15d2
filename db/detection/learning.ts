import { MINUTE_MS } from "#lib/units.ts";
import { isLearning, learningUntil, startOfHistory } from "#model/rules.ts";
import type { Queryable } from "../client.ts";
import { readFirstEventMinutes } from "./source-events.ts";

/** Returns when the first day ends (epoch ms) of the zones that are in it. */
export async function readLearning(
  db: Queryable,
  zoneIds: readonly number[],
  nowMs: number,
): Promise<ReadonlyMap<number, number>> {
  const found = await readFirstEventMinutes(db, zoneIds, startOfHistory(nowMs));
  const learning = [...found].filter(([, minute]) => isLearning(minute, nowMs / MINUTE_MS));
  return new Map(learning.map(([zoneId, minute]) => [zoneId, (learningUntil(minute) ?? 0) * MINUTE_MS]));
}
