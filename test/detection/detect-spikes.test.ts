import { expect, test } from "vitest";
import { openSpike, readMinuteCounts } from "#db/detection/spikes.ts";
import { platformHealth } from "#db/schema/coverage.ts";
import { spikes } from "#db/schema/spikes.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { EVIDENCE_DIMENSIONS } from "#model/kinds.ts";
import { END, eventsOf, minuteOf, openDetectWorld, START } from "./detect-support.ts";
import { ZONE } from "./trend-support.ts";

const { database, world } = await openDetectWorld();

test("two detectors at a time open exactly one spike per attack, and close it after a quiet quarter of an hour", async () => {
  const rules = ["941100", "942100", "943100", "944100"];
  const attack = [40, 60, 50];
  await world.keep(rules.flatMap((ruleId) => eventsOf(attack, START + 5, { ruleId })));
  const [one, other] = [world.createDetector(), world.createDetector()];

  await world.tickThrough(START, START + 38, async () => void (await Promise.all([one(), other()])));

  const found = await world.readSpikes();
  expect(found.map(({ ruleId }) => ruleId)).toEqual(rules);
  for (const spike of found) {
    expect(spike).toMatchObject({
      peak: 150,
      windowMinutes: 3,
      kind: "spike",
      // A rule alone pages only if many addresses send it.
      severity: "warning",
      memberOf: null,
    });
    expect(minuteOf(spike.openedAt)).toBe(START + 6);
    expect(minuteOf(spike.closedAt)).toBe((minuteOf(spike.lastActiveAt) ?? 0) + 15);
    // The windows of a quarter of an hour let go of the attack first.
    expect(minuteOf(spike.closedAt)).toBe(START + 5 + 3 + 14 + 15);
  }
});

test("a running minute over its threshold opens one spike now, and is judged again when it is over", async () => {
  await world.keep([...eventsOf([1], START - 3_000), ...eventsOf([40], START + 5)]);
  await database.db.insert(platformHealth).values({ zoneId: ZONE, watchedSince: new Date() });
  const inMinute = (seconds: number) => (START + 5) * MINUTE_MS + seconds * 1_000;
  let calls = 0;
  const [one, other] = [0, 1].map(() => world.createDetector({ afterSpikes: () => (calls += 1) }));
  await world.tickAt(inMinute(20), async () => void (await Promise.all([one?.(), other?.()])));

  const [opened, ...others] = await world.readSpikes();
  expect(others).toEqual([]);
  expect(opened).toMatchObject({
    openedAt: new Date(inMinute(20)),
    lastActiveAt: new Date(inMinute(20)),
    judgedThrough: new Date(inMinute(0)),
    closedAt: null,
    windowCount: 40,
    evidence: { total: 40, to: new Date(inMinute(20)).toISOString() },
  });
  const { rows } = await database.pool.query("select from platform_health where rising_until > $1", [
    new Date(inMinute(60)),
  ]);
  expect([calls, rows.length]).toEqual([1, 1]);

  // Nothing has changed. A replica that has just started finds the same.
  await world.tickAt(inMinute(30), one);
  await world.tickAt(inMinute(40));
  expect([calls, await world.readSpikes()]).toEqual([1, [opened]]);

  await world.keep(eventsOf([80], START + 5, { ruleId: "942100" }));
  await world.tickAt(inMinute(61));
  const [judged] = await world.readSpikes();
  expect(judged).toMatchObject({ openedAt: opened?.openedAt, judgedThrough: new Date(inMinute(60)) });
  expect(judged?.peak).toBeGreaterThanOrEqual(80);

  await world.tickThrough(START + 6, START + 36);
  const [closed, ...more] = await world.readSpikes();
  expect(more).toEqual([]);
  expect(minuteOf(closed?.closedAt ?? null)).toBe(START + 5 + 15 + 15);
});

test("a further quiet minute of an open spike is stored and enqueues nothing", async () => {
  await world.keep(eventsOf([40, 60, 50], START + 5, { ruleId: "941100" }));
  let calls = 0;
  const ticks = world.createDetector({ afterSpikes: () => (calls += 1) });
  await world.tickThrough(START, START + 8, ticks);
  expect(calls).toBeGreaterThan(0);
  // The windows of a quarter of an hour let go of the attack.
  await world.tickThrough(START + 8, START + 25, ticks);
  calls = 0;
  await world.tickThrough(START + 25, START + 30, ticks);
  const [quiet] = await world.readSpikes();
  expect([calls, minuteOf(quiet?.judgedThrough ?? null), quiet?.closedAt]).toEqual([0, START + 30, null]);
  await world.tickThrough(START + 30, START + 37, ticks);
  expect([calls, minuteOf((await world.readSpikes())[0]?.closedAt ?? null)]).toEqual([1, START + 37]);
});

test("requests without a user agent count as such, those without a country as none", async () => {
  const events = eventsOf([90], START + 5).map((event, i) => ({
    ...event,
    ua: i < 60 ? null : i < 70 ? "" : "curl/8.5.0",
    country: null,
  }));
  await world.keep(events);
  await world.tickThrough(START + 5, START + 6);
  const [spike] = await world.readSpikes();
  expect(spike?.evidence.top.ua).toEqual([
    { value: "", count: 70, share: 70 / 90 },
    { value: "curl/8.5.0", count: 20, share: 20 / 90 },
  ]);
  expect(spike?.evidence.top.country).toEqual([]);
});

test("evidence names what an attack has in common, capped, with hostile text kept as it is", async () => {
  const hostile = "\u202e<script>alert(1)</script>\u001b[31m=cmd|' /C calc'!A0 ${jndi:ldap://x}";
  const long = "\u{1f600}".repeat(1_000);
  const events = eventsOf([90], START + 5).map((event, i) => ({
    ...event,
    ip: `203.0.113.${i % 9}`,
    ua: i % 3 === 0 ? long : hostile,
    url: `https://shop.example/${i < 60 ? `login${hostile.replaceAll(/[?#]/g, "")}` : long}?id=${i}#x`,
    country: "",
    action: i < 30 ? "block" : null,
  }));
  const distinct = eventsOf([20], START + 4).map((event, i) => ({ ...event, ua: `agent ${i}`, ja4: null }));
  await world.keep([...events, ...distinct]);

  await world.tickThrough(START + 5, START + 6);

  const [spike] = await world.readSpikes();
  if (spike === undefined) throw new Error("no spike");
  const { evidence } = spike;
  expect(evidence).toMatchObject({ total: 110, sampled: 110 });
  expect(evidence.firstEventAt).toBe(new Date((START + 4) * MINUTE_MS).toISOString());
  expect(evidence.sparkline.slice(-3)).toEqual([0, 20, 90]);
  expect(evidence.top.ua.slice(0, 2)).toEqual([
    { value: hostile, count: 60, share: 60 / 110 },
    { value: "\u{1f600}".repeat(300), count: 30, share: 30 / 110 },
  ]);
  expect(evidence.top.path.map(({ count }) => count)).toEqual([60, 30]);
  expect(evidence.top.path[0]?.value).toMatch(/^\/login/);
  expect(evidence.top.action).toEqual([{ value: "block", count: 50, share: 50 / 110 }]);
  expect([evidence.top.country, evidence.top.ja4]).toEqual([[], []]);
  for (const dimension of EVIDENCE_DIMENSIONS) {
    expect(evidence.top[dimension].length).toBeLessThanOrEqual(5);
    for (const { value } of evidence.top[dimension])
      expect(Array.from(value).length).toBeLessThanOrEqual(300);
  }
});

test("the evidence of a new spike is collected every minute, that of an old one after a tenth of its age", async () => {
  await world.keep(eventsOf(Array<number>(60).fill(30), START));
  const detect = world.createDetector();
  const ages: number[] = [];
  for (let end = START + 1; end <= START + 60; end += 1) {
    await world.tickThrough(end - 1, end, detect);
    const [spike] = await world.readSpikes();
    if (spike !== undefined) ages.push(end - Date.parse(spike.evidence.to) / MINUTE_MS);
  }
  expect(ages.length).toBeGreaterThan(50);
  const collected = ages.flatMap((age, i) => (age === 0 ? [i] : []));
  expect(collected.slice(0, 6)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(collected.length).toBeLessThan(30);
  expect(Math.max(...ages)).toBe(5);
});

test("a late burst in a minute that was judged already is judged again, one in a spike that is over is not", async () => {
  await world.keep(eventsOf([1, 0, 0, 1], START - 3_000));
  await world.tickThrough(START + 8, START + 10);
  expect(await world.readSpikes()).toEqual([]);

  await world.keep(eventsOf([30], START + 2));
  await world.tickThrough(START + 10, START + 11);
  const [spike] = await world.readSpikes();
  expect(minuteOf(spike?.openedAt ?? null)).toBe(START + 3);

  await world.tickThrough(START + 11, START + 36);
  const closed = minuteOf((await world.readSpikes())[0]?.closedAt ?? null);
  if (closed === null) throw new Error("still open");
  await world.tickThrough(START + 36, closed + 3);
  const before = await world.readSpikes();
  await world.keep(
    eventsOf([500], closed - 4, { feature: "late" }).map((event) => ({
      ...event,
      logId: `late${event.logId}`,
    })),
  );
  await world.tickThrough(closed + 3, closed + 9);
  expect(await world.readSpikes()).toEqual(before);
});

test("a burst of minutes ago that late events complete has the addresses and the incident of its own window", async () => {
  const scanner = { ip: "198.51.100.7", ja4: "tool", ua: "tool/1", asn: "AS9", url: "/x" };
  const scan = Array.from({ length: 40 }, (_, i) =>
    eventsOf([1], START + 2, { ...scanner, ruleId: `93${i}` }),
  );
  await world.keep([...eventsOf([1, 0, 0, 1], START - 3_000), ...scan.flat()]);
  const [rules, sources] = [world.createDetector(), world.createSourceDetector()];
  await world.tickThrough(START + 2, START + 10, async () => void (await sources(), await rules()));
  await world.keep(eventsOf([30], START + 2, scanner));
  await world.tickThrough(START + 10, START + 11, rules);

  const [incident, spike] = (await database.db.select().from(spikes).orderBy(spikes.id)) as [never, never];
  expect(incident).toMatchObject({ kind: "sources" });
  expect(spike).toMatchObject({ windowCount: 0, addresses: 1, mainSenders: 1, memberOf: incident["id"] });
});

test("hours of a gap do not pass for quiet ones", async () => {
  const counts = Array.from({ length: 60 * 60 }, () => 1);
  const first = END - 90 - counts.length;
  const hours = Array.from({ length: 60 }, (_, i) => Math.ceil(first / 60) + i);
  const gaps = hours.filter((hour) => hour % 3 === 0);
  const seen = counts.map((count, i) => (gaps.includes(Math.floor((first + i) / 60)) ? 0 : count));
  await world.keep(eventsOf([...seen, 90], first), { gaps });

  await world.tickThrough(END - 90, END - 89);

  const [spike] = await world.readSpikes();
  // One event a minute; with the gaps as zeros it would be two thirds of that.
  expect(spike?.baseline).toBe(spike?.windowMinutes);
  expect(spike).toMatchObject({ kind: "spike", windowMinutes: 3 });
});

test("a detector that slept through an attack does not open its spike once more", async () => {
  await world.keep(eventsOf([40, 60, 50], START + 5));
  await world.tickThrough(START, START + 38);
  const told = await database.db.select().from(spikes);
  expect(told).toMatchObject([{ closedAt: expect.any(Date) }]);

  for (const { id: _id, ...row } of told) {
    expect(await openSpike(database.db, { ...row, closedAt: null })).toBeNull();
    const next = new Date((row.closedAt?.getTime() ?? 0) + MINUTE_MS);
    const another = { ...row, openedAt: next, lastActiveAt: next, judgedThrough: next, closedAt: null };
    expect(await openSpike(database.db, another)).not.toBeNull();
  }
});

test("minutes are read from the first of their span to before its end, in order, of rules that have enough events", async () => {
  const add = (minute: number, total: number, ruleId = "942100", width = 60) =>
    database.pool.query(
      "insert into rule_buckets (zone_id, rule_id, width, starts_at, total, blocked) values (101, $1, $2, to_timestamp($3), $4, $4)",
      [ruleId, width, minute * 60, total],
    );
  for (const [minute, total] of [
    [3, 4],
    [1, 2],
    [0, 1],
    [-1, 50],
    [5, 60],
    [4, 5],
  ] as const)
    await add(START + minute, total);
  await add(START, 70, "942100", 3_600);
  await add(START, 11, "941100");
  const span = { fromMs: START * MINUTE_MS, toMs: (START + 5) * MINUTE_MS };
  const read = (atLeast: number) => readMinuteCounts(database.db, { ...span, atLeast });
  const minutes = [0, 1, 3, 4].map((minute) => START + minute);
  expect(await read(12)).toEqual([{ zoneId: 101, ruleId: "942100", minutes, counts: [1, 2, 4, 5] }]);
  expect((await read(13)).length).toBe(0);
});

test("a rule whose old hours are being recounted waits, one whose last minutes are still to be rolled up does not", async () => {
  await world.keep(["941100", "942100"].flatMap((ruleId) => eventsOf([90], START + 5, { ruleId })));
  const recount = (ruleId: string, minute: number) =>
    database.pool.query(
      "insert into dirty_buckets (zone_id, rule_id, minute) values (101, $1, to_timestamp($2))",
      [ruleId, minute * 60],
    );
  await recount("941100", START - 600);
  await recount("942100", START + 4);
  const detector = world.createDetector();
  await world.tickThrough(START + 5, START + 6, detector);
  expect((await world.readSpikes()).map(({ ruleId }) => ruleId)).toEqual(["942100"]);
  await database.pool.query("delete from dirty_buckets");
  await world.tickThrough(START + 6, START + 7, detector);
  expect((await world.readSpikes()).map(({ ruleId }) => ruleId)).toEqual(["941100", "942100"]);
});
