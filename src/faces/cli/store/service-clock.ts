import type { Database } from "#db/client.ts";
import { readClockOffset } from "#db/postgres/server.ts";
import type { Clock } from "#lib/clock.ts";

/** Returns a clock with the time of Postgres, because the service uses that time for everything it writes. */
export async function readServiceClock({ db }: Database, clock: Clock): Promise<Clock> {
  const offsetMs = Math.round(await readClockOffset(db));
  return () => clock() + offsetMs;
}
