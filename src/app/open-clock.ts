import type { Database } from "#db/client.ts";
import { readClockOffset } from "#db/postgres/clock.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/stop-stack.ts";

const MEASURE_EVERY_MS = 60_000;

/**
 * Returns Postgres's time, estimated with this machine's clock, so that replicas whose clocks differ agree on which
 * work is due and which minutes are closed.
 */
export async function openClock(
  database: Database,
  log: Log,
  stack: StopStack,
  /** Called after every measurement: with null if the database answered, otherwise with the error. */
  onMeasured: (error: unknown) => void = () => undefined,
): Promise<Clock> {
  let offsetMs = await readClockOffset(database.db);
  const measure = async () => {
    try {
      offsetMs = await readClockOffset(database.db);
      onMeasured(null);
    } catch (thrown) {
      onMeasured(thrown);
      log.debug({ err: thrown }, "clock offset not measured");
    }
  };
  const timer = setInterval(() => void measure(), MEASURE_EVERY_MS);
  stack.defer("clock", () => clearInterval(timer));
  return () => Date.now() + Math.round(offsetMs);
}
