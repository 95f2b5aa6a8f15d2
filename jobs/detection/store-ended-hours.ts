import type { Database } from "#db/client.ts";
import { noteJudgedHours } from "#db/detection/judged-hours.ts";
import { addSourceHours, readStoredCounts, storeSourceHours } from "#db/detection/source-hours.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { type KeptWatch, takeEndedHours } from "./kept-watch.ts";

/**
 * Stores the hours that watches have counted, so that nobody reads their events again. The rows are added before the
 * numbers of stored events are read, so an event that comes later finds a row to mark. An hour of which, or of the hour
 * before, a watch has taken more or fewer events stays stale and is counted again from its events. The others are noted as
 * judged with the settings that `settingsOf` names. Returns the zones of the stale hours.
 */
export async function storeEndedHours(
  database: Database,
  watches: readonly KeptWatch[],
  settingsOf: (known: string) => string,
): Promise<readonly number[]> {
  const ended = watches.map(takeEndedHours);
  const hours = ended.flatMap((one) => one.hours);
  if (hours.length === 0) return [];
  const { db } = database;
  await addSourceHours(db, hours);
  const before = hours.map(({ zoneId, hour }) => ({ zoneId, hour: hour - 1 }));
  const stored = await readStoredCounts(db, [...before, ...hours]);
  const isWhole = ({ events, eventsBefore }: (typeof hours)[number], i: number) =>
    eventsBefore === stored[i] && events === stored[hours.length + i];
  const whole = hours.filter(isWhole).map((hour) => ({ ...hour, marks: 0 }));
  const addresses = ended.flatMap((one) => one.addresses);
  if (whole.length > 0) await inTransaction(database, ({ tx }) => storeSourceHours(tx, whole, addresses));
  const judged = whole.filter(({ isJudged }) => isJudged);
  await noteJudgedHours(
    db,
    judged.map((hour) => ({ ...hour, judgedWith: settingsOf(hour.known) })),
    false,
  );
  return hours.filter((hour, i) => !isWhole(hour, i)).map(({ zoneId }) => zoneId);
}
