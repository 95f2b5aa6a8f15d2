import { expect, test } from "vitest";
import { HOUR_MS, NOW, openEmulator } from "../emulator/support.ts";
import { countStates, hoursOf, isSettled, prove, sealedIds } from "./coverage-support.ts";
import { openIngest } from "./ingest-support.ts";

const SPARSE = { historyHours: 72, eventsPerSecond: 0.02 } as const;

test("a first start seals every settled hour in two rounds; the one that had begun to expire is a gap that says so", async () => {
  const emulator = await openEmulator(SPARSE);
  const ingest = await openIngest(emulator);
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  const hours = await hoursOf(ingest);
  const settled = hours.filter((hour) => isSettled(hour, emulator.now()));
  expect(settled).toHaveLength(71);
  expect(settled.filter(({ state }) => state !== "sealed")).toEqual([]);
  expect(await countStates(ingest)).toEqual({ sealed: 71, gap: 1, open: 1 });
  const { rows: gaps } = await ingest.database.pool.query(
    "select starts_at, gap_reason, evidence from coverage_windows where state = 'gap'",
  );
  const startsAt = Math.floor((NOW - 72 * HOUR_MS) / HOUR_MS) * HOUR_MS;
  expect(gaps).toEqual([
    {
      starts_at: new Date(startsAt),
      gap_reason: expect.stringContaining("first watched"),
      evidence: expect.objectContaining({ from: new Date(startsAt).toISOString() }),
    },
  ]);
  const { stored, shown } = await sealedIds(emulator, ingest);
  expect(shown.length).toBeGreaterThan(2_000);
  expect(stored).toEqual(shown);
});
