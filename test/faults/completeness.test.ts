import { expect, test } from "vitest";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { digest } from "#model/fingerprint.ts";
import { openChangingPlatform } from "../ingest/ingest-support.ts";
import { sample, soakTest } from "../support/sample.ts";
import { isConcerned } from "./concerned-jobs.ts";
import { type FaultyWorld, openFaultyWorld } from "./faulty-world.ts";
import { createForgetfulSearch } from "./forgetful-search.ts";
import { type Replica, ZONE } from "./replica.ts";

interface Hour {
  readonly at: number;
  readonly state: string;
  readonly reason: string | null;
  readonly stored: number;
}

async function readHours({ database }: FaultyWorld): Promise<Hour[]> {
  const { rows } = await database.pool.query<Hour>(
    `select (extract(epoch from starts_at) * 1000)::float8 as at, state, gap_reason as reason, stored_count as stored
     from coverage_windows order by starts_at`,
  );
  return rows;
}

/** Runs the jobs in pipeline order, once per quarter of an hour. */
async function passTime(
  { emulator }: FaultyWorld,
  replica: Replica,
  quarters: number,
  jobs: readonly string[] = replica.jobNames.filter(isConcerned),
): Promise<void> {
  for (let quarter = 0; quarter < quarters; quarter++) {
    for (const job of jobs) await replica.run(job).catch(() => undefined);
    emulator.advance(16 * MINUTE_MS);
  }
}

/** Passes time until every settled hour is sealed, at most so many quarters of an hour. */
async function expectAllSealed(world: FaultyWorld, replica: Replica, quarters: number): Promise<void> {
  const { emulator } = world;
  const lastHour = emulator.now() - (emulator.now() % HOUR_MS);
  const isSettled = (at: number) => at + HOUR_MS + 40 * MINUTE_MS < emulator.now();
  const readSettled = async () => (await readHours(world)).filter(({ at }) => isSettled(at));
  const isOpen = ({ state }: Hour) => state === "open";
  for (let quarter = 0; quarter < quarters; quarter++) {
    if (isSettled(lastHour) && !(await readSettled()).some(isOpen)) break;
    await passTime(world, replica, 1);
  }
  const settled = await readSettled();
  expect(settled.filter(isOpen)).toEqual([]);
  expect(settled.filter(({ state }) => state === "sealed").length).toBeGreaterThan(5);
  expect(await world.inspect(false)).toEqual([]);
}

const LOSSES = [
  ["F44: shortened pages", { kind: "shortened-page", keep: 0.5 }],
  ["F44: passes that end too early", { kind: "shortened-page", keep: 0.5, endsEarly: true }],
  ["F48: events that no list pass shows", { kind: "dropped-events", share: 0.3, passes: 1_000 }],
] as const;
/** One loss for the whole pipeline: repair-window.test.ts has the other two with fewer jobs. */
test.each(sample(LOSSES, ([name]) => name.startsWith("F44")))(
  "%s, with a search that forgets rows as well, are found by the counts and repaired",
  async (_name, fault) => {
    const world = await openFaultyWorld({ historyHours: 5, eventsPerSecond: 0.02 });
    world.emulator.addFault(fault);
    const search = createForgetfulSearch();
    const url = await openChangingPlatform(world.emulator, search.change);
    const replica = world.openReplica({ platformUrl: url });
    for (const job of ["poll-events", "walk-days", "reconcile-counts"]) await replica.run(job);
    expect(search.forgotten()).toBeGreaterThan(20);
    const missing = (await world.inspect()).length;
    expect(missing).toBeGreaterThan(0);
    const { rows } = await world.database.pool.query(
      "select 1 from differing_cells where resolved_at is null",
    );
    expect(rows.length).toBeGreaterThan(0);
    await passTime(world, replica, 3);
    // No hour that lacks an event is sealed, and no hour that the list does not show while the list is short.
    expect(await world.inspect(false)).toEqual([]);
    world.emulator.clearFaults();
    await expectAllSealed(world, replica, 7);
  },
);

test.each(sample(["oldest", "newest"] as const, (order) => order === "oldest"))(
  "F48, F49: events that appear late, and while the list is being read (%s first), are all there when their hour is sealed",
  async (order) => {
    const world = await openFaultyWorld({
      historyHours: 4,
      eventsPerSecond: 0.02,
      lateShare: 0.3,
      pageSize: 25,
      order,
    });
    const url = await openChangingPlatform(world.emulator, (body) => {
      world.emulator.advance(2_000);
      return body;
    });
    const replica = world.openReplica({ platformUrl: url });
    await expectAllSealed(world, replica, 9);
  },
);

test("F48: an hour is not sealed while an event of it may still appear", async () => {
  const world = await openFaultyWorld({ historyHours: 2, eventsPerSecond: 0.02, lateShare: 0.3 });
  const replica = world.openReplica();
  const sealedIn = async () => (await readHours(world)).filter(({ state }) => state === "sealed").length;
  let sealed = 0;
  // The running hour ends, settles and is sealed.
  for (let step = 0; step < 16; step++) {
    for (const job of replica.jobNames.filter(isConcerned)) {
      await replica.run(job).catch(() => undefined);
      // Nothing is proven at one and the same moment, because stored events might have arrived after the read.
      world.emulator.advance(1_000);
    }
    expect(await world.inspect(false)).toEqual([]);
    sealed = await sealedIn();
    world.emulator.advance(4 * MINUTE_MS);
  }
  expect(sealed).toBeGreaterThanOrEqual(3);
  // An hour that was sealed before its last event had appeared is reopened by that event.
  const { rows } = await world.database.pool.query(
    "select starts_at from coverage_windows where reopened_at is not null",
  );
  expect(rows).toEqual([]);
});

soakTest(
  "F56: 80 hours without the platform leave exactly the lost hours as gaps, one alert, and go on at the oldest hour still served",
  async () => {
    const world = await openFaultyWorld({ historyHours: 6, eventsPerSecond: 0.005, lateShare: 0 });
    const { emulator, toPlatform, database } = world;
    const replica = world.openReplica();
    // The service has recorded that it watches the zone before the first hours are stored, so it reports none of them.
    await replica.run("report-service");
    await passTime(world, replica, 7, replica.jobNames);
    const before = await readHours(world);
    const firstLost = before.filter(({ state }) => state === "sealed").at(-1)?.at ?? 0;
    expect(firstLost).toBeGreaterThan(0);

    await toPlatform.refuse();
    const outageEndsAt = emulator.now() + 80 * HOUR_MS;
    while (emulator.now() < outageEndsAt) {
      emulator.advance(8 * HOUR_MS);
      for (const job of replica.jobNames) await replica.run(job).catch(() => undefined);
    }
    await toPlatform.accept();
    await passTime(world, replica, 6, replica.jobNames);

    const hours = await readHours(world);
    const gaps = hours.filter(({ state, at }) => state === "gap" && at > firstLost);
    const first = firstLost + HOUR_MS;
    const lastLost = Math.floor((outageEndsAt - 72 * HOUR_MS) / HOUR_MS) * HOUR_MS;
    expect(gaps[0]?.at).toBe(first);
    expect(gaps.map(({ at }) => at)).toEqual(gaps.map((_, index) => first + index * HOUR_MS));
    // The hour that was partly forgotten when the platform came back is lost as well; the next one was read whole.
    expect(Math.abs((gaps.at(-1)?.at ?? 0) - lastLost)).toBeLessThanOrEqual(HOUR_MS);
    expect(gaps.every(({ reason }) => reason !== null && reason !== "")).toBe(true);
    expect(await world.inspect(false)).toEqual([]);
    const after = hours.filter(({ at }) => at > (gaps.at(-1)?.at ?? 0) && at + 2 * HOUR_MS < emulator.now());
    expect(after.map(({ at }) => at)).toEqual(
      after.map((_, index) => (gaps.at(-1)?.at ?? 0) + (index + 1) * HOUR_MS),
    );
    expect(after.filter(({ state }) => state !== "sealed")).toEqual([]);
    const { rows: told } = await database.pool.query<{ fingerprint: string; first: number }>(
      `select fingerprint, count(*) filter (where reason = 'first')::int as first
     from alerts a join notifications n on n.alert_id = a.id where kind = 'self' group by fingerprint`,
    );
    const firstsOf = new Map(told.map(({ fingerprint, first }) => [fingerprint, first]));
    // The warning that hours are about to be lost, and one alert that they are.
    expect(firstsOf).toEqual(
      new Map([
        [digest(["self", "coverage.loss", ZONE]), 1],
        [digest(["self", "coverage.gap", ZONE]), 1],
      ]),
    );
  },
);
