import type { Database } from "../../db/client.ts";
import { countEventsOfZones } from "../../db/detection/source-events.ts";
import { addSourceHours, storeSourceHours } from "../../db/detection/source-hours.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { minutesOfHour } from "./count-source-hours.ts";
import { type KeptWatch, takeEndedHours } from "./kept-watch.ts";

/**
 * Stores the hours that watches have counted, so that nobody reads their events again. The rows are added before the
 * events are counted, so an event that comes later finds a row to mark. An hour with more or fewer events than its
 * watch has taken stays stale and is counted again from its events.
 */
export async function storeEndedHours(database: Database, watches: readonly KeptWatch[]): Promise<void> {
  const ended = watches.map(takeEndedHours);
  const hours = ended.flatMap((one) => one.hours);
  if (hours.length === 0) return;
  const { db } = database;
  await addSourceHours(db, hours);
  const totals = await countEventsOfZones(
    db,
    hours.map(({ zoneId, hour }) => ({ zoneId, ...minutesOfHour(hour) })),
  );
  const whole = hours.filter(({ events }, i) => events === totals[i]).map((hour) => ({ ...hour, marks: 0 }));
  const addresses = ended.flatMap((one) => one.addresses);
  if (whole.length > 0) await inTransaction(database, ({ tx }) => storeSourceHours(tx, whole, addresses));
}
