import { expect, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { decideHours, enterHours } from "#db/proof/covered-hours.ts";
import { writeHorizon } from "#db/proof/horizons.ts";
import { clearSuspicion, noteSuspicion, watchZones } from "#db/proof/platform-health.ts";
import { reopenHours } from "#db/proof/reopen-hours.ts";
import { createRaiseAlertsJob } from "#jobs/alerts/raise-alerts.ts";
import { createSealWindowsJob } from "#jobs/proof/seal-windows.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { horizonAt, startOfHour, WHOLE_HORIZON } from "#model/horizon.ts";
import { createAlertWorld } from "../alerts/alert-world.ts";
import { type MigratedDatabase, shareDatabase } from "../db/migrated-database.ts";
import { NOW } from "../emulator/support.ts";
import { silent, ZONE } from "../ingest/ingest-support.ts";

const ALL = ["chat", "pager"];
const never = new AbortController().signal;
const database = await shareDatabase();

/** The jobs that decide and tell, on a clock that stands at `nowMs`. */
function createReporter(on: MigratedDatabase, clock: () => number) {
  const deps = { database: on, clock, log: silent };
  const done = async () => undefined;
  const seal = createSealWindowsJob({ ...deps, settleMs: 15 * MINUTE_MS, afterSeal: done });
  const raise = createRaiseAlertsJob({
    ...deps,
    routing: () => routeToAll(ALL),
    zoneIds: [ZONE],
    afterAlerts: done,
  });
  const world = createAlertWorld(on);
  return {
    seal: () => seal.run({ zoneId: ZONE } as never, never),
    async raise() {
      // As report-service does every minute; these tests skip some.
      await watchZones(on.db, [ZONE], { nowMs: clock(), breakMs: 30 * MINUTE_MS });
      await raise.run({} as never, never);
    },
    /** `transition reason severity headline` of what one channel was told. */
    async told() {
      const messages = await world.messages();
      return messages
        .filter(({ channel }) => channel === "chat")
        .map(
          ({ transition, reason, message }) =>
            `${transition} ${reason} ${message.severity} ${message.headline}`,
        );
    },
    alerts: world.alerts,
    outbox: () => world.outbox(),
  };
}

/** A zone that is watched since long ago and whose hours are all sealed, but those that begin from `openFrom` on. */
async function enterZone(openFrom: number, now: number): Promise<void> {
  const fromMs = startOfHour(NOW) - 120 * HOUR_MS;
  await enterHours(database.db, ZONE, { fromMs, toMs: startOfHour(now) });
  const verdicts = [];
  for (let startsAt = fromMs; startsAt < openFrom; startsAt += HOUR_MS)
    verdicts.push({ startsAt, state: "sealed" as const, reason: null, evidence: {}, looks: null });
  await decideHours(database.db, ZONE, verdicts, NOW - 48 * HOUR_MS);
}

test("I5: an outage of 80 hours is one alert that names all its gaps and resolves when no more come", async () => {
  let now = NOW;
  const reporter = createReporter(database, () => now);
  const part = startOfHour(horizonAt(NOW));
  await enterZone(part - 8 * HOUR_MS, NOW);
  // The platform still shows a part of the ninth hour, and the hours after it were copied.
  const sealed = { state: "sealed", reason: null, evidence: {}, looks: null } as const;
  const copied = Array.from({ length: 71 }, (_, n) => ({ ...sealed, startsAt: part + (n + 1) * HOUR_MS }));
  await decideHours(database.db, ZONE, copied, NOW);
  // One alert is raised, whichever job comes first.
  await reporter.raise();
  for (let round = 0; round < 2; round++) {
    await reporter.seal();
    await Promise.all([reporter.raise(), reporter.raise()]);
    now += MINUTE_MS;
  }
  const lost = (hours: number, until: string) =>
    `Zone 101: ${hours} hours between 2026-11-17 07:00 and 2026-11-17 ${until} UTC can never be proven complete`;
  expect(await reporter.told()).toEqual([`1 first critical ${lost(8, "15:00")}`]);
  expect(await reporter.outbox()).toEqual(["1 first chat", "1 first pager"]);

  for (let hour = 0; hour < 2; hour++) {
    now += 61 * MINUTE_MS;
    await decideHours(database.db, ZONE, [{ ...sealed, startsAt: startOfHour(now) - HOUR_MS }], now);
    await reporter.seal();
    await reporter.raise();
  }
  await Promise.all([reporter.raise(), reporter.raise()]);
  await reporter.raise();
  expect(await reporter.told()).toEqual([
    `1 first critical ${lost(8, "15:00")}`,
    `2 resolved critical ${lost(9, "16:00")}. No other hour has been lost since then`,
  ]);
  expect(await reporter.alerts()).toMatchObject([
    { kind: "self", zoneId: ZONE, state: "resolved", ruleId: null },
  ]);
});

test("while hours go on being lost the open alert is brought up to date and nobody is paged again", async () => {
  let now = NOW;
  const reporter = createReporter(database, () => now);
  await enterZone(startOfHour(horizonAt(NOW)), NOW);
  for (let hour = 0; hour < 8; hour++) {
    await reporter.seal();
    await reporter.raise();
    now += HOUR_MS;
  }
  expect(await reporter.told()).toHaveLength(1);
  const [alert] = await reporter.alerts();
  expect(alert).toMatchObject({ state: "firing", transition: 1 });
  expect(JSON.stringify(alert?.details)).toContain("Zone 101: 7 hours between");
  now += 61 * MINUTE_MS;
  await reporter.raise();
  const news = await reporter.told();
  expect(news[1]).toMatch(/^2 resolved critical Zone 101: 7 hours/);

  // A new outage is a new alert.
  await reporter.seal();
  await reporter.raise();
  await reporter.raise();
  expect((await reporter.told()).slice(2)).toEqual([
    expect.stringMatching(/^1 first critical Zone 101: 2 hours/),
  ]);
});

test("the hour that had begun to expire when the zone was first watched alerts nobody, nor do the first hours to copy", async () => {
  let now = NOW;
  const reporter = createReporter(database, () => now);
  await reporter.raise();
  await reporter.seal();
  await reporter.raise();
  now += 25 * MINUTE_MS;
  await reporter.raise();
  expect(await reporter.told()).toEqual([]);
});

test("an hour that is about to be lost warns, worsens and resolves, with one notification each", async () => {
  let now = NOW;
  const oldest = startOfHour(horizonAt(NOW)) + 25 * HOUR_MS;
  await enterZone(oldest, NOW);
  const reporter = createReporter(database, () => now);
  const raiseTwice = async () => {
    await Promise.all([reporter.raise(), reporter.raise()]);
    await reporter.raise();
  };
  now = oldest + 72 * HOUR_MS - 2 * MINUTE_MS - 24 * HOUR_MS;
  await raiseTwice();
  expect(await reporter.told()).toEqual([]);
  now += 1;
  await raiseTwice();
  now += 12 * HOUR_MS - 1;
  await raiseTwice();
  now += 1;
  await raiseTwice();
  const text = "hours the platform begins to forget an hour that is not proven complete";
  const before = [`1 first warning Zone 101: in 23.9 ${text}`, `2 worse error Zone 101: in 11.9 ${text}`];
  expect(await reporter.told()).toEqual(before);
  const verdict = { state: "sealed", reason: null, evidence: {}, looks: null } as const;
  const sealed = Array.from({ length: 48 }, (_, n) => ({ ...verdict, startsAt: oldest + n * HOUR_MS }));
  await decideHours(database.db, ZONE, sealed, now);
  await raiseTwice();
  expect(await reporter.told()).toEqual([
    ...before,
    "3 resolved warning Zone 101: no hour is about to be lost any more",
  ]);
});

test("expired hours that nobody decides about cause an alert after a while", async () => {
  let now = NOW;
  await enterZone(startOfHour(horizonAt(NOW)) - 3 * HOUR_MS, NOW);
  const reporter = createReporter(database, () => now);
  await reporter.raise();
  now += 14 * MINUTE_MS;
  await reporter.raise();
  expect(await reporter.told()).toEqual([]);
  now += MINUTE_MS;
  await reporter.raise();
  await reporter.raise();
  expect(await reporter.told()).toEqual([expect.stringMatching(/^1 first error Zone 101: in 0 minutes/)]);
});

test("a zone that stays suspect is reported once, after 15 minutes, and resolves when the looks agree again", async () => {
  let now = NOW;
  await enterZone(startOfHour(NOW), NOW);
  const reporter = createReporter(database, () => now);
  const { db } = database;
  const raiseTwice = async () => {
    await Promise.all([reporter.raise(), reporter.raise()]);
    await reporter.raise();
  };
  const search = { zoneId: ZONE, route: "search" } as const;
  // A suspicion that ends before 15 minutes are over alerts nobody.
  await noteSuspicion(db, { ...search, atMs: now }, { reason: "The search shows no event.", isWhole: true });
  now += 14 * MINUTE_MS;
  await raiseTwice();
  expect(await clearSuspicion(db, { ...search, atMs: now })).toBe(true);
  now += 2 * MINUTE_MS;
  await raiseTwice();
  expect(await reporter.told()).toEqual([]);

  const counts = { zoneId: ZONE, route: "counts" } as const;
  await noteSuspicion(
    db,
    { ...counts, atMs: now },
    { reason: "The platform counts nothing.", isWhole: true },
  );
  now += 14 * MINUTE_MS;
  await noteSuspicion(
    db,
    { ...search, atMs: now },
    { reason: "The search shows nothing known.", isWhole: true },
  );
  await raiseTwice();
  expect(await reporter.told()).toEqual([]);
  now += MINUTE_MS;
  await raiseTwice();
  const first =
    "1 first error Zone 101: the platform's answers cannot be right and have been held back since 2026-11-20 15:46 UTC. The platform counts nothing.";
  expect(await reporter.told()).toEqual([first]);
  expect(await reporter.outbox()).toEqual(["1 first chat", "1 first pager"]);

  // One of two suspicions ends: the alert stays, and its text names the other.
  now += 10 * MINUTE_MS;
  await clearSuspicion(db, { ...counts, atMs: now });
  await raiseTwice();
  const [open] = await reporter.alerts();
  expect(open).toMatchObject({ state: "firing", transition: 1 });
  expect(JSON.stringify(open?.details)).toContain("The search shows nothing known.");
  now += 10 * MINUTE_MS;
  await clearSuspicion(db, { ...search, atMs: now });
  await raiseTwice();
  expect(await reporter.told()).toEqual([
    first,
    "2 resolved error Zone 101: the platform shows the known events again",
  ]);
});

test("a platform that keeps events for less than before is reported once, and resolves when it keeps them again", async () => {
  let now = NOW;
  await enterZone(startOfHour(NOW), NOW);
  const reporter = createReporter(database, () => now);
  const since = startOfHour(NOW) + 5 * MINUTE_MS;
  await writeHorizon(database.db, ZONE, { keptMs: 48 * HOUR_MS, since, beforeMs: 72 * HOUR_MS }, now);
  now = since + 9 * MINUTE_MS;
  await reporter.raise();
  expect(await reporter.told()).toEqual([]);
  now = since + 10 * MINUTE_MS;
  await Promise.all([reporter.raise(), reporter.raise()]);
  await reporter.raise();
  const until = new Date(since).toISOString().slice(0, 16).replace("T", " ");
  const first = `1 first error Zone 101: the platform now keeps events for 2 d (3 d until ${until} UTC)`;
  expect(await reporter.told()).toEqual([first]);
  await writeHorizon(database.db, ZONE, WHOLE_HORIZON, now);
  await reporter.raise();
  expect(await reporter.told()).toEqual([
    first,
    "2 resolved error Zone 101: the platform keeps events for 3 d again",
  ]);
});

test("a reopened hour is reported once, an hour after its seal was withdrawn, and resolves after the seal", async () => {
  let now = NOW;
  await enterZone(startOfHour(NOW), NOW);
  const reporter = createReporter(database, () => now);
  const raiseTwice = async () => {
    await Promise.all([reporter.raise(), reporter.raise()]);
    await reporter.raise();
  };
  const reopen = (startsAt: number, reason: string) =>
    reopenHours(database.db, ZONE, [{ startsAt, reason }], now);
  const seal = (startsAt: number) => {
    const verdict = { startsAt, state: "sealed", reason: null, evidence: {}, looks: null } as const;
    return decideHours(database.db, ZONE, [verdict], now);
  };
  const [early, late] = [startOfHour(NOW) - 9 * HOUR_MS, startOfHour(NOW) - 5 * HOUR_MS];
  await reopen(early, "The platform counts 12 events, 9 are stored.");
  now += 59 * MINUTE_MS;
  await reopen(late, "An event was stored after the seal.");
  await raiseTwice();
  expect(await reporter.told()).toEqual([]);
  now += MINUTE_MS;
  await raiseTwice();
  const first =
    "1 first warning Zone 101: 2 hours were reopened and are not sealed again yet. The oldest begins at 2026-11-20 06:00 UTC. The platform counts 12 events, 9 are stored.";
  expect(await reporter.told()).toEqual([first]);

  // The alert stays while another reopened hour is open.
  await seal(early);
  await raiseTwice();
  expect(await reporter.told()).toEqual([first]);
  await seal(late);
  await raiseTwice();
  expect(await reporter.told()).toEqual([
    first,
    "2 resolved warning Zone 101: every reopened hour is now sealed again or a gap",
  ]);
});
