import type { Database } from "#db/client.ts";
import { decideHours, listOpenZones, lockOpenHours } from "#db/coverage/covered-hours.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { giveUpHour } from "#stages/coverage/judge-hour.ts";

/**
 * Makes gaps of the undecided hours before `beforeMs` of zones that are no longer configured. No job judges these hours
 * any more, and their days could never be archived. Returns the number of hours.
 */
export async function giveUpHours(
  database: Database,
  { zoneIds, beforeMs, nowMs }: { zoneIds: readonly number[]; beforeMs: number; nowMs: number },
): Promise<number> {
  const removed = (await listOpenZones(database.db, beforeMs)).filter((zoneId) => !zoneIds.includes(zoneId));
  let hours = 0;
  for (const zoneId of removed)
    hours += await inTransaction(database, async ({ tx }) => {
      const open = await lockOpenHours(tx, zoneId, beforeMs);
      const verdicts = open.map((hour) => ({ startsAt: hour.startsAt, ...giveUpHour(hour) }));
      return decideHours(tx, zoneId, verdicts, nowMs);
    });
  return hours;
}
