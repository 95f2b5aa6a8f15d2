import type { Database } from "../../../db/client.ts";
import { readClockOffset } from "../../../db/postgres/clock.ts";
import type { Clock } from "../../lib/clock.ts";

/** The service's time is Postgres's: what a command writes beside it must not be of another. */
export async function readServiceClock({ db }: Database, clock: Clock): Promise<Clock> {
  const offsetMs = Math.round(await readClockOffset(db));
  return () => clock() + offsetMs;
}
