import type { Database } from "#db/client.ts";
import { recordAnswer, recordRefusal } from "#db/service/platform-health.ts";
import type { Clock } from "#lib/clock.ts";
import type { Log } from "#lib/log.ts";
import type { EdgeObserver } from "./watch-edge.ts";

/** Interval at which an unchanged state is written, because answers arrive many times per second. */
const WRITE_EVERY_MS = 30_000;

/** Stores the outcome of the platform's answers, so that every replica sees it. A failed write does not stop ingest. */
export function recordPlatformHealth(parts: {
  readonly database: Pick<Database, "db">;
  readonly clock: Clock;
  readonly log: Log;
}): EdgeObserver {
  const { database, clock, log } = parts;
  const written = new Map<number, { readonly outcome: string; readonly atMs: number }>();

  async function note(
    zoneId: number,
    outcome: string,
    write: (atMs: number) => Promise<void>,
  ): Promise<void> {
    const atMs = clock();
    const last = written.get(zoneId);
    if (last?.outcome === outcome && Math.abs(atMs - last.atMs) < WRITE_EVERY_MS) return;
    written.set(zoneId, { outcome, atMs });
    try {
      await write(atMs);
    } catch (thrown) {
      written.delete(zoneId);
      log.debug({ err: thrown, zoneId }, "platform health not recorded");
    }
  }

  return {
    answered: (zoneId) => note(zoneId, "answered", (atMs) => recordAnswer(database.db, zoneId, atMs)),
    refused: (zoneId, code) =>
      note(zoneId, code, (atMs) => recordRefusal(database.db, zoneId, { atMs, code })),
  };
}
