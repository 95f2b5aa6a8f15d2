import type { Database } from "#db/client.ts";
import { readCoveredHours } from "#db/proof/covered-hours.ts";
import type { Emulator } from "#emulator/emulator.ts";
import { HOUR_MS } from "#lib/units.ts";
import type { CoveredHour } from "#model/covered-hour.ts";
import { horizonAt } from "#model/horizon.ts";
import { oracle } from "../emulator/support.ts";
import { ZONE } from "../ingest/ingest-jobs.ts";
import { type IngestTest, storedRows } from "../ingest/ingest-support.ts";

/** Runs every job once, in the order in which they enqueue each other; each a second after the one before. */
export async function prove(emulator: Emulator, ingest: IngestTest): Promise<void> {
  const { poll, walk, reconcile, repair, seal } = ingest;
  for (const job of [poll, walk, reconcile, repair, reconcile, seal]) {
    await job();
    emulator.advance(1_000);
  }
}

/** Rounds that prove every hour, also those without events: these need a second look an hour after the first. */
export async function proveOverAnHour(emulator: Emulator, ingest: IngestTest): Promise<void> {
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  emulator.advance(61 * 60_000);
  await prove(emulator, ingest);
  await prove(emulator, ingest);
}

/** The recorded hours of the zone, oldest first. */
export function hoursOf({ database }: { database: Database }): Promise<CoveredHour[]> {
  return readCoveredHours(database.db, ZONE, { fromMs: 0, toMs: Date.UTC(2100, 0) });
}

/** Returns the number of hours in each state. */
export async function countStates(ingest: { database: Database }): Promise<Record<string, number>> {
  const counts = { open: 0, sealed: 0, gap: 0 };
  for (const { state } of await hoursOf(ingest)) counts[state] += 1;
  return counts;
}

/** Ended, settled, and not begun to be forgotten. */
export function isSettled({ startsAt }: { startsAt: number }, now: number): boolean {
  return startsAt + HOUR_MS + 15 * 60_000 <= now && startsAt >= horizonAt(now);
}

/** Ids of the stored and of the shown events that lie in sealed hours; both sorted. */
export async function sealedIds(emulator: Emulator, ingest: IngestTest) {
  const hours = await hoursOf(ingest);
  const sealed = new Set(hours.flatMap(({ startsAt, state }) => (state === "sealed" ? [startsAt] : [])));
  const isSealed = (at: number) => sealed.has(at - (at % HOUR_MS));
  const stored = (await storedRows(ingest.database)).filter(({ at }) => isSealed(at));
  const shown = (await oracle(emulator)).filter(({ timestamp }) => isSealed(timestamp));
  return {
    stored: stored.map(({ log_id }) => log_id).sort(),
    shown: shown.map(({ logId }) => logId).sort(),
  };
}

interface CellRow {
  readonly starts_at: Date;
  readonly rule_id: string;
  readonly upstream_count: number;
  readonly stored_count: number;
  readonly repairs: number;
  readonly resolved_at: Date | null;
  readonly next_repair_at: Date;
}

/** Every cell that ever differed, in order. */
export async function cellsOf({ database }: IngestTest): Promise<CellRow[]> {
  const { rows } = await database.pool.query<CellRow>(
    "select * from differing_cells where zone_id = $1 order by starts_at, rule_id",
    [ZONE],
  );
  return rows;
}
