import { afterAll, expect, test, vi } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { readAttacks, readSearchedThrough } from "#db/detection/spikes.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import type { FiredMinute } from "#detection/rules/sources/judge-sources.ts";
import { createSourceWatch } from "#detection/rules/sources/source-watch.ts";
import { toMinute } from "#detection/rules/stored-episode.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { type ReplayedHours, replayRules, replaySourceHours } from "#jobs/detection/replay-late.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { attackerIdOf } from "#model/fingerprint.ts";
import { WEEKDAYS } from "#model/kinds.ts";
import { createKnownSources } from "#model/known-source.ts";
import { createDraw } from "../bench/sources/draw.ts";
import { drawZone } from "../bench/sources/draw-zone.ts";
import { START_MINUTE } from "../bench/sources/zone.ts";
import { createMigratedDatabase, WAITS_HERE } from "../db/migrated-database.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { SEED } from "../support/random-tests.ts";
import { draws } from "../support/sample.ts";
import { createLateWorld, daysOf, type TimedEvent } from "./late-world.ts";

/** The live part of the test: after two days of history, the first of which nothing judges. */
const LIVE = START_MINUTE + 2 * 1_440;
const LIVE_MINUTES = 6 * 60;
/** The ticks come every so many minutes; each of them judges a quarter of an hour. */
const STEP = 10;
/** A zone without an outage, with which the others are compared. */
const WHOLE = 200;
const CUT = Array.from({ length: draws(1, 3) }, (_, index) => 101 + index);

const database = await createMigratedDatabase();
afterAll(() => database.drop());
await ensurePartitions(database, daysOf(START_MINUTE, LIVE + LIVE_MINUTES));

/** A scanner that tries many rules, and a burst of one rule from many addresses. */
function attackAt(minute: number, name: number): TimedEvent[] {
  const tool = { asn: "AS9", ja4: `tool${name}`, ua: `tool/${name}`, url: `/admin/${name}` };
  const scanner = Array.from({ length: 60 }, (_, i) => ({
    ...tool,
    minute: minute + Math.floor(i / 4),
    ip: `198.51.100.${name}`,
    ruleId: `8${name}${i}`,
  }));
  const burst = Array.from({ length: 120 }, (_, i) => ({
    minute: minute + Math.floor(i / 8),
    ip: `203.0.${name}.${i}`,
    asn: `AS${i}`,
    ja4: `t${i}`,
    ua: `agent ${i}`,
    url: `/${i}`,
    ruleId: `7${name}`,
  }));
  return [...scanner, ...burst];
}

/** Two visitors in three minutes, each of another address, on four rules. */
const visitors = Array.from({ length: (2 * (LIVE - START_MINUTE + LIVE_MINUTES)) / 3 }, (_, i) => ({
  minute: START_MINUTE + Math.floor((3 * i) / 2),
  ip: `10.${i >> 8}.${i & 255}.1`,
  ruleId: `94${i % 4}100`,
  ja4: `t13d${i % 7}`,
  ua: `browser ${i % 9}`,
  asn: `AS${i % 11}`,
  url: `/page/${i % 13}`,
}));

function drawEvents(seed: number): TimedEvent[] {
  const draw = createDraw(seed);
  let drawn: readonly TimedEvent[] = [];
  for (let index = 0; drawn.length === 0 || drawn.length > 25_000; index += 1)
    drawn = drawZone(seed, index).events;
  const attacks = Array.from({ length: 5 }, (_, i) => attackAt(LIVE + 60 + draw.integer(0, 200), i + 1));
  const end = LIVE + LIVE_MINUTES;
  return [...drawn, ...attacks.flat()]
    .filter(({ minute }) => minute < end)
    .toSorted((a, b) => a.minute - b.minute);
}

/** What a zone misses. */
interface Cut {
  readonly from: number;
  readonly to: number;
  /** The share of its events that come late. Below 1 the search goes on and only lacks them. */
  readonly share: number;
}

function drawCut(seed: number): Cut {
  const draw = createDraw(seed);
  const from = LIVE + draw.integer(30, 120);
  return { from, to: from + draw.integer(20, 110), share: draw.chance(0.5) ? 1 : draw.between(0.1, 0.9) };
}

const namesOf = (fired: readonly FiredMinute[]) =>
  fired.flatMap(({ minute, fires }) => fires.map((fire) => `${minute} ${attackerIdOf(fire)}`)).sort();

test("live and late together find what a replay of the complete events finds, for outages at random", async () => {
  const seed = SEED % 100_000;
  const events = drawEvents(seed);
  const world = createLateWorld(database, [...CUT, WHOLE]);
  const cuts = new Map(CUT.map((zoneId, i) => [zoneId, drawCut(seed * 100 + i)]));
  const draw = createDraw(seed + 1);
  world.setMinute(LIVE);
  const late = new Map(
    CUT.map((zoneId) => {
      const { from, to, share } = cuts.get(zoneId) as Cut;
      return [zoneId, events.filter(({ minute }) => minute >= from && minute < to && draw.chance(share))];
    }),
  );
  const lateOf = new Map([...late].map(([zoneId, missing]) => [zoneId, new Set(missing)]));
  const isDown = (zoneId: number, minute: number) => {
    const cut = cuts.get(zoneId);
    return cut !== undefined && cut.share === 1 && minute >= cut.from && minute < cut.to;
  };
  for (const zoneId of [...CUT, WHOLE]) {
    await world.store(
      zoneId,
      events.filter(({ minute }) => minute < LIVE),
    );
    await world.search(zoneId, START_MINUTE, LIVE);
  }
  await world.tick();
  await world.judgeLate();
  for (let end = LIVE + STEP; end <= LIVE + LIVE_MINUTES; end += STEP) {
    world.setMinute(end);
    for (const zoneId of [...CUT, WHOLE]) {
      const missing = lateOf.get(zoneId) ?? new Set();
      const added = events.filter(
        (event) => event.minute >= end - STEP && event.minute < end && !missing.has(event),
      );
      await world.store(zoneId, added);
      const cut = cuts.get(zoneId);
      // The outage ends. The events that it delayed are copied within the next minutes.
      if (cut !== undefined && end > cut.to + 10 && end - STEP <= cut.to + 10)
        await world.store(zoneId, late.get(zoneId) ?? []);
      const isBack = cut === undefined || cut.share < 1 || end <= cut.from || end > cut.to + 10;
      if (isBack && !isDown(zoneId, end - 1)) await world.search(zoneId, LIVE, end);
    }
    await world.tick();
    if (end % 30 === 0) await world.judgeLate();
  }
  world.setMinute(LIVE + LIVE_MINUTES + 25);
  await world.judgeLate();

  expect(await world.countUnjudged()).toBe(0);
  const watch = createSourceWatch();
  const expected: FiredMinute[] = [];
  for (const event of events) {
    expected.push(...watch.closeUntil(event.minute));
    watch.take(event, event.minute);
  }
  expected.push(...watch.closeUntil(LIVE + LIVE_MINUTES));
  const whole = (await world.readSpikes(WHOLE)).filter(({ isLate }) => !isLate);
  for (const zoneId of CUT) {
    const cut = cuts.get(zoneId) as Cut;
    const [from, to] = [Math.floor(cut.from / 60), Math.floor((LIVE + LIVE_MINUTES) / 60)];
    const hours = await readReplayed(zoneId, from, to);
    const fired = await replaySourceHours(database, hours, {
      isOver: () => false,
      counted: new Map(),
      hasCounted: false,
    });
    const within = expected.filter(({ minute }) => minute >= from * 60 && minute < to * 60);
    expect(namesOf(fired ?? [])).toEqual(namesOf(within));
    const found = await replayRules(database, hours, {
      closed: [],
      atLeast: 10,
      sensitivityOf: () => ({ z: 3.5, floor: 10 }),
    });
    const describe = (ruleId: string, ...facts: readonly (number | null)[]) => [ruleId, ...facts].join(" ");
    const live = whole
      .filter(({ kind, openedAt }) => kind !== "sources" && toMinute(openedAt) > (from + 1) * 60)
      .map(({ ruleId, openedAt, peak, closedAt }) =>
        describe(ruleId, toMinute(openedAt), peak, closedAt && toMinute(closedAt)),
      );
    const replayed = found
      .filter(({ episode }) => episode.openedAt > (from + 1) * 60)
      .map(({ ruleId, episode, closedAt }) => describe(ruleId, episode.openedAt, episode.peak, closedAt));
    expect(replayed.sort()).toEqual(live.sort());
    // Everything that the whole zone shows is a row of this one, too, and nobody is notified of it twice.
    const rows = await world.readSpikes(zoneId);
    for (const spike of whole.filter(({ kind }) => kind !== "sources"))
      expect(rows.map(({ ruleId }) => ruleId)).toContain(spike.ruleId);
    const late = rows.filter(({ isLate, openedAt }) => isLate && openedAt.getTime() > LIVE * MINUTE_MS);
    const names = new Set(namesOf(expected));
    for (const finding of late.flatMap(({ sources }) => sources?.findings ?? []))
      for (const minute of [finding.since - 1, finding.lastFiredAt - 1])
        expect(names).toContain(`${minute} ${attackerIdOf(finding)}`);
    const openings = whole.map(({ ruleId, openedAt }) => `${ruleId} ${openedAt.toISOString()}`);
    for (const { ruleId, openedAt } of late.filter(({ kind }) => kind !== "sources"))
      expect(openings).toContain(`${ruleId} ${openedAt.toISOString()}`);
    const attackers = rows.flatMap(({ sources }) => (sources?.findings ?? []).map(attackerIdOf));
    for (const spike of whole.flatMap(({ sources }) => sources?.findings ?? []))
      expect(attackers).toContain(attackerIdOf(spike));
  }
  const messages = (await world.readNotifications()).map(
    ({ content }) => content as { zoneId: number; kind: string },
  );
  for (const zoneId of CUT)
    expect(messages.filter((one) => one.zoneId === zoneId && one.kind === "late").length).toBeLessThanOrEqual(
      cuts.get(zoneId)?.share === 1 ? 1 : 2,
    );
  expect(messages.filter(({ zoneId }) => zoneId === WHOLE)).toEqual([]);
}, 300_000);

test("a killed run leaves nothing, and of two replicas one writes the rows and the only message", async () => {
  const [zoneId, begin] = [300, LIVE + 65];
  const end = begin + 135;
  const events = [...visitors, ...attackAt(begin + 20, 1), ...attackAt(end - 70, 2)];
  const world = createLateWorld(database, [zoneId]);
  await runOutage(world, zoneId, { events, begin, end });
  const waiting = await askCoverage(zoneId);
  expect(
    waiting
      .filter(({ isWaiting }) => isWaiting)
      .map(({ startsAt }) => Date.parse(startsAt) / MINUTE_MS - LIVE),
  ).toEqual(expect.arrayContaining([60, 120, 180]));
  const live = await world.readSpikes(zoneId);
  const before = await world.readAlerts();

  const holder = await database.pool.connect();
  await holder.query("begin");
  await holder.query("select pg_advisory_xact_lock(7603103, $1)", [zoneId]);
  const killed = world.judgeLate().catch((thrown: unknown) => thrown);
  const pid = await vi.waitFor(async () => {
    const { rows } = await database.pool.query<{ pid: number }>(
      `select pid from ${WAITS_HERE} and locktype = 'advisory'`,
    );
    expect(rows).toHaveLength(1);
    return rows[0]?.pid;
  });
  await database.pool.query("select pg_terminate_backend($1)", [pid]);
  expect(await killed).toBeInstanceOf(Error);
  await holder.query("rollback");
  holder.release();
  expect(await world.readSpikes(zoneId)).toEqual(live);

  await Promise.all([world.judgeLate(), world.judgeLate()]);
  const rows = await world.readSpikes(zoneId);
  const late = rows.filter(({ isLate }) => isLate);
  expect(rows.filter(({ isLate }) => !isLate)).toEqual(live);
  expect(late.map(({ ruleId }) => ruleId)).toEqual(["(sources)", "(sources)", "71", "72"]);
  const alerts = (await world.readAlerts()).slice(before.length);
  expect(alerts).toMatchObject([{ kind: "late", zoneId, state: "resolved", ruleId: null }]);
  const notifications = await world.readNotifications();
  const sent = notifications.filter(({ alertId }) => alertId === alerts[0]?.id);
  expect(sent).toMatchObject([{ channel: "on-call", reason: "first", transition: 1 }]);
  expect(sent[0]?.content).toMatchObject({
    severity: "info",
    state: "resolved",
    headline: "2026-10-07 01:05 to 03:05 UTC in zone 300 arrived late: 2 attackers, 2 rules",
  });
  expect((await askCoverage(zoneId)).filter(({ isWaiting }) => isWaiting)).toEqual([]);
  // The history of the first start is listed, and sent to nobody.
  const [history] = before.filter((alert) => alert.zoneId === zoneId);
  expect(notifications.map(({ alertId }) => alertId)).not.toContain(history?.id);
  const settings = (await askCoverage(zoneId, "-60h")).map(({ judgedWith }) => judgedWith);
  expect(settings.slice(0, 24)).toEqual(Array(24).fill("too little history"));
  expect(settings.slice(30, 53)).toEqual(Array(23).fill("settings"));
  // Nothing has come since, so nothing is judged again.
  expect(await world.judgeLate()).toBe("every copied hour is judged");
  expect(await world.readSpikes(zoneId)).toEqual(rows);
}, 300_000);

/** Runs five hours, of which those from `begin` to `end` are copied when they are over. */
async function runOutage(
  world: ReturnType<typeof createLateWorld>,
  zoneId: number,
  { events, begin, end }: { events: readonly TimedEvent[]; begin: number; end: number },
): Promise<void> {
  const between = (from: number, to: number) => events.filter(({ minute }) => minute >= from && minute < to);
  world.setMinute(LIVE);
  await world.store(zoneId, between(0, LIVE));
  await world.search(zoneId, START_MINUTE, LIVE);
  await world.tick();
  await world.judgeLate();
  let stored = LIVE;
  for (let minute = LIVE + 5; minute <= LIVE + 5 * 60 + 30; minute += 5) {
    world.setMinute(minute);
    if (minute > begin && minute < end) continue;
    await world.store(zoneId, between(stored, minute));
    stored = minute;
    await world.search(zoneId, LIVE, minute);
    await world.tick();
    if (minute === LIVE + 60) await world.judgeLate();
  }
}

test("minutes whose events are copied late, while their hour runs, are judged again after the hour", async () => {
  const [zoneId, hour] = [350, LIVE + 60];
  const missing = attackAt(hour + 7, 5);
  const world = createLateWorld(database, [zoneId]);
  const between = (from: number, to: number) =>
    visitors.filter(({ minute }) => minute >= from && minute < to);
  world.setMinute(LIVE);
  await world.store(zoneId, between(0, LIVE));
  await world.search(zoneId, START_MINUTE, LIVE);
  await world.tick();
  await world.judgeLate();
  for (let minute = LIVE + 5; minute <= hour + 90; minute += 5) {
    world.setMinute(minute);
    await world.store(zoneId, between(minute - 5, minute));
    if (minute === hour + 45) await world.store(zoneId, missing);
    await world.search(zoneId, LIVE, minute);
    await world.tick();
    if (minute === hour) await world.judgeLate();
  }
  expect(await world.countUnjudged()).toBe(1);
  await world.judgeLate();
  expect(await world.countUnjudged()).toBe(0);

  const rows = await world.readSpikes(zoneId);
  const found = rows.filter(({ openedAt }) => openedAt.getTime() >= hour * MINUTE_MS);
  const attackers = found.flatMap(({ sources }) => (sources?.findings ?? []).map(attackerIdOf));
  expect(found.map(({ ruleId }) => ruleId)).toContain("75");
  expect(attackers).toContainEqual(expect.stringContaining("198.51.100.5"));
}, 300_000);

/** A spike of one rule, most of whose events two addresses send. */
const twoSenders = (minute: number, events: number) =>
  Array.from({ length: events }, (_, i) => ({
    minute: minute + Math.floor((i * 15) / events),
    ip: `203.0.113.${i % 50 === 0 ? 3 + (i % 3) : i % 2}`,
    ruleId: `65${events}`,
    asn: "",
    ja4: "",
    ua: "",
    url: "/",
  }));

test("a late rule that few addresses send is in the message if it is far above the usual, and a channel in its quiet hours gets the message after these", async () => {
  const [zoneId, begin] = [400, LIVE + 65];
  const allDay = {
    timeZone: "UTC",
    days: WEEKDAYS,
    fromMinute: 0,
    toMinute: 24 * 60,
    channels: ["on-call"],
    matchers: {},
    critical: "hold" as const,
  };
  let quietHours = [allDay];
  const world = createLateWorld(database, [zoneId], () => ({
    ...routeToAll(["chat", "on-call"]),
    quietHours,
  }));
  const events = [...visitors, ...twoSenders(begin + 20, 600), ...twoSenders(begin + 20, 120)];
  await runOutage(world, zoneId, {
    events: events.toSorted((a, b) => a.minute - b.minute),
    begin,
    end: begin + 135,
  });
  await world.judgeLate();
  const late = (await world.readSpikes(zoneId)).filter(({ ruleId }) => ruleId.startsWith("65"));
  expect(late.map(({ ruleId, gradedBy, mainSenders }) => [ruleId, gradedBy, mainSenders])).toEqual([
    ["65120", "score", 2],
    ["65600", "addresses", 2],
  ]);
  const sent = async () =>
    (await world.readNotifications())
      .map(({ channel, content }) => ({ channel, ...(content as AlertMessage) }))
      .filter((message) => message.zoneId === zoneId)
      .map(({ channel, reason, state, headline }) => `${channel} ${reason} ${state}: ${headline}`);
  const message = "first resolved: 2026-10-07 01:05 to 03:05 UTC in zone 400 arrived late: 1 rule";
  expect(await sent()).toEqual([`chat ${message}`]);
  await world.judgeLate();
  expect(await sent()).toEqual([`chat ${message}`]);
  quietHours = [];
  await Promise.all([world.judgeLate(), world.judgeLate()]);
  await world.judgeLate();
  expect(await sent()).toEqual([`chat ${message}`, `on-call ${message}`]);
}, 300_000);

async function askCoverage(zoneId: number, from = "-6h") {
  const now = (LIVE + 5 * 60 + 30) * MINUTE_MS;
  const asked = await runStoreCommand(
    await loadSubject("coverage"),
    { DATABASE_URL: database.url },
    ["--zone", String(zoneId), "--from", from, "--json"],
    { now },
  );
  return (
    JSON.parse(asked.out) as { items: { startsAt: string; isWaiting: boolean; judgedWith: string | null }[] }
  ).items;
}

async function readReplayed(zoneId: number, from: number, to: number): Promise<ReplayedHours> {
  const afterMs = (from - 171) * HOUR_MS;
  return {
    zoneId,
    from,
    to,
    covered: await readSearchedThrough(database.db, { afterMs, untilMs: to * HOUR_MS - 1, zoneId }),
    attacks: await readAttacks(database.db, { afterMs, zoneId }),
    known: createKnownSources([], 0)(zoneId),
  };
}
