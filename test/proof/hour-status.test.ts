import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { horizonAt, startOfHour } from "#model/horizon.ts";
import { readZones } from "#proof/coverage/read-zones.ts";
import { NOW, openEmulator } from "../emulator/support.ts";
import { enterWatched, newest, openIngest, ZONE } from "../ingest/ingest-support.ts";
import { prove } from "./coverage-support.ts";

test("an expired hour has the same status and reason before and after seal-windows decides it", async () => {
  const emulator = await openEmulator({
    zones: [ZONE],
    historyHours: 1,
    eventsPerSecond: 0.01,
    lateShare: 0,
  });
  const ingest = await openIngest(emulator);
  // Only the two oldest hours and the newest ones are undecided.
  const oldest = startOfHour(horizonAt(NOW));
  await enterWatched(ingest.database, NOW, (at) => at <= oldest + HOUR_MS || newest(NOW, 2)(at));
  const readExpired = async () => {
    const now = emulator.now();
    const [zone] = await readZones(ingest.database.db, now, { zoneId: ZONE, from: 0, to: now });
    return (zone?.hours ?? [])
      .filter(({ startsAt }) => startsAt + HOUR_MS <= horizonAt(now))
      .map(({ startsAt, status, gapReason }) => ({
        startsAt,
        status,
        reason: gapReason?.replace(" Longwatch has not recorded this gap yet.", "") ?? null,
      }));
  };
  const expectSame = async () => {
    const before = await readExpired();
    await ingest.seal();
    const after = await readExpired();
    // An hour that is about to be sealed is not called sealed before that.
    expect(before.map((hour) => (hour.status === "searched" ? { ...hour, status: "sealed" } : hour))).toEqual(
      after,
    );
    return after.map(({ status }) => status);
  };

  // A first start: the oldest hour was partly forgotten before the zone was watched.
  await ingest.poll();
  expect(await expectSame()).toEqual([]);

  // Hours whose proof is complete when they begin to expire.
  await prove(emulator, ingest);
  await prove(emulator, ingest);
  emulator.advance(65 * MINUTE_MS);
  for (const job of [ingest.poll, ingest.walk, ingest.poll, ingest.reconcile]) await job();
  emulator.setNow(emulator.now() + HOUR_MS - 10 * MINUTE_MS);
  expect((await expectSame())[0]).toBe("unwatched");

  // An outage: some hours were searched in part, some never.
  emulator.advance(80 * HOUR_MS);
  const statuses = await expectSame();
  expect(statuses.filter((status) => status === "gap").length).toBeGreaterThan(8);
});
