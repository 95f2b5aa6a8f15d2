import { coverageWindows } from "#db/schema/coverage.ts";
import { HOUR_MS } from "#lib/units.ts";
import { FIRST_WATCHED } from "#proof/rules/judge-hour.ts";
import type { MigratedDatabase } from "../../db/migrated-database.ts";

export const NOW = Date.UTC(2026, 10, 20, 15, 10);

type Row = Partial<typeof coverageWindows.$inferInsert>;

/** Rows for `count` hours from `from` on. */
export async function insertHours(
  { db }: MigratedDatabase,
  from: number,
  count: number,
  row: Row,
  zoneId = 101,
): Promise<void> {
  const rows = Array.from({ length: count }, (_, n) => ({
    zoneId,
    ...row,
    startsAt: new Date(from + n * HOUR_MS),
  }));
  await db.insert(coverageWindows).values(rows);
}

export const SEALED: Row = {
  state: "sealed",
  storedCount: 100,
  upstreamCount: 100,
  sealedAt: new Date(NOW),
  evidence: { list: "quiet", search: "closed", reconcile: 100 },
};

function searched(hour: number, count: number): Row[] {
  return Array.from({ length: count }, (_, n) => ({
    searchedThrough: new Date(hour + (n + 1) * HOUR_MS),
    storedCount: 10,
  }));
}

/** A zone that was first watched in the middle of an hour, lost its service for five hours and is now up to date. */
export async function insertStory(database: MigratedDatabase): Promise<void> {
  const at = (day: number, hour: number) => Date.UTC(2026, 10, day, hour);
  await insertHours(database, at(15, 21), 1, {
    state: "gap",
    gapReason: FIRST_WATCHED,
    storedCount: 7,
  });
  await insertHours(database, at(15, 22), 27, SEALED);
  await insertHours(database, at(17, 1), 5, {
    state: "gap",
    gapReason: "counts differed: \u001b[2J\u202e3 events missing",
    storedCount: 3,
    upstreamCount: 6,
  });
  await insertHours(database, at(17, 6), 74, SEALED);
  for (const [index, row] of searched(at(20, 8), 6).entries())
    await insertHours(database, at(20, 8 + index), 1, row);
  await insertHours(database, at(20, 14), 2, { searchedThrough: new Date(at(20, 14)), storedCount: 4 });
}
