import { expect, test } from "vitest";
import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import { createZoneReplay } from "#alerts/rules/backtest/replay-zone.ts";
import { readRaisableSpikes } from "#db/alerts/alerts.ts";
import { deleteKnownSource, insertKnownSource } from "#db/detection/exclusions.ts";
import { readEventsOfZones, readFirstSeen, readSourceEvents } from "#db/detection/source-events.ts";
import { toSourceAddress } from "#detection/rules/sources/source-event.ts";
import { backtestCommand } from "#faces/cli/backtest/backtest.ts";
import { compareSourceHours } from "#jobs/detection/count-source-hours.ts";
import { readTick } from "#jobs/detection/source-tick.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { SourceMode } from "#model/kinds.ts";
import { createKnownSources, type KnownSource } from "#model/known-source.ts";
import { storedSources } from "#model/stored-sources.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { WAITS_HERE } from "../db/migrated-database.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { END, minuteOf, openDetectWorld } from "./detect-support.ts";
import { createRollUp, makeEvent, storeAll, ZONE } from "./trend-support.ts";

const ATTACK = END - 90;
const NO_KNOWN = createKnownSources([], 0)(ZONE);
const HISTORY_MINUTES = 3 * 1_440;

const { database, world } = await openDetectWorld();

function eventAt(minute: number, name: string, event: Partial<WafEvent>): WafEvent {
  return makeEvent({ occurredAt: minute * MINUTE_MS + 1_000, logId: `${name}/${minute}`, ...event });
}

/** Three days of visitors: an event every four minutes, each of another address, on four rules. */
const visitors = Array.from({ length: HISTORY_MINUTES / 4 }, (_, i) =>
  eventAt(END - HISTORY_MINUTES + 4 * i, "visitor", {
    ip: `10.${i >> 8}.${i & 255}.1`,
    ruleId: `94${i % 4}100`,
    ja4: `t13d${i % 7}`,
    ua: `browser ${i % 9}`,
    asn: `AS${i % 11}`,
    url: `https://shop.example/page/${i % 13}?q=${i}`,
    country: "NL",
  }),
);

/** One address that tries forty rules, in twelve minutes. */
const scanner = Array.from({ length: 80 }, (_, i) =>
  eventAt(ATTACK + Math.floor(i / 7), `scanner/${i}`, {
    ip: "198.51.100.7",
    ruleId: `9${100 + (i % 40)}`,
    ja4: "t13d1516h2_tool",
    asn: "AS64500",
    url: "/wp-login.php",
    country: "BR",
  }),
);

/** Sixty addresses with one fingerprint, half an hour later, on so many rules that none of these rises by itself. */
const network = Array.from({ length: 60 }, (_, i) =>
  eventAt(ATTACK + 15 + Math.floor(i / 4), `network/${i}`, {
    ip: `203.0.113.${i}`,
    ja4: "t13d1516h2_net",
    ruleId: `97${10 + (i % 30)}`,
  }),
);

function replay(events: readonly WafEvent[]): ReplayedMessage[] {
  const replayed = createZoneReplay({ z: 3.5, floor: 10, fewAddresses: 3 });
  for (const event of events.toSorted((a, b) => a.occurredAt - b.occurredAt))
    replayed.take({ ...event, action: "other" }, Math.floor(event.occurredAt / MINUTE_MS));
  return replayed.finish().filter(({ subject }) => subject === "incident");
}

test("two detectors, one of them started again in the middle, store what a replay of the events finds", async () => {
  const events = [...visitors, ...scanner, ...network];
  await world.keep(events);
  let one = world.createSourceDetector();
  const other = world.createSourceDetector();
  // At the same time, and one after the other in both orders: each reads what the other has just stored.
  const orders = [
    async () => void (await Promise.all([one(), other()])),
    async () => one().then(() => other()),
    async () => other().then(() => one()),
  ];
  let turn = 0;
  const ticks = async () => orders[turn++ % orders.length]?.();
  await world.tickThrough(ATTACK - 3, ATTACK + 8, ticks);
  one = world.createSourceDetector();
  await world.tickThrough(ATTACK + 8, ATTACK + 70, ticks);

  const found = await world.readSpikes();
  const expected = replay(events);
  const firsts = expected.filter(({ reason }) => reason === "first");
  expect(firsts.map(({ attackers }) => attackers)).toEqual([
    [{ kind: "rules_per_ip", key: "198.51.100.7" }],
    [{ kind: "ips_per_ja4", key: "t13d1516h2_net" }],
  ]);
  const attacks = found.filter(({ kind }) => kind === "sources");
  expect(
    attacks.map(({ sources, openedAt }) => ({
      attackers: sources?.findings.slice(0, 1).map(({ kind, key }) => ({ kind, key })),
      at: minuteOf(openedAt),
    })),
  ).toEqual(firsts.map(({ attackers, at }) => ({ attackers, at })));
  const ends = expected.filter(({ reason }) => reason === "resolved").map(({ at }) => at);
  expect(attacks.map(({ closedAt }) => minuteOf(closedAt))).toEqual(ends);
  expect(attacks.map(({ severity }) => severity)).toEqual(
    firsts.map(({ incident }) => expected.findLast((one) => one.incident === incident)?.severity),
  );
  const [spike] = attacks;
  const sources = storedSources.parse(spike?.sources);
  expect(sources.grown.length).toBeGreaterThan(0);
  expect(sources.firstSeen).toBe(ATTACK);
  expect(spike?.evidence.top.ja4[0]?.value).toBe("t13d1516h2_tool");
  // A replay of the stored events prints the alert that was sent.
  const args = ["--sources", "--from", "-1d", "--json"];
  const replayed = await runStoreCommand(backtestCommand, { DATABASE_URL: database.url }, args, {
    now: (ATTACK + 70) * MINUTE_MS,
  });
  const { messages } = JSON.parse(replayed.out) as { messages: { at: string; reason: string }[] };
  expect(messages.filter(({ reason }) => reason === "first")).toMatchObject(
    attacks.map(({ openedAt }) => ({ at: openedAt.toISOString() })),
  );
  // The hours that were counted are those of their events.
  const hours = {
    fromHour: Math.floor((END - HISTORY_MINUTES) / 60),
    toHour: Math.floor(END / 60),
    known: NO_KNOWN,
  };
  expect(await compareSourceHours(database.db, ZONE, hours)).toEqual([]);
  // So are those that a watch counted as it judged them.
  const stored = await readCounted();
  expect(stored.usual).toMatchObject([{ address: "198.51.100.7", peak60: 40 }]);
  await database.pool.query("truncate source_hours, source_usual");
  await world.tickThrough(ATTACK + 70, ATTACK + 75, world.createSourceDetector());
  expect(await readCounted()).toEqual(stored);
});

async function readCounted() {
  const hours = await database.pool.query("select starts_at, peaks, is_stale from source_hours order by 1");
  const usual = await database.pool.query("select * from source_usual order by day, address");
  return { hours: hours.rows, usual: usual.rows };
}

test("an attacker over the line is named while the minute runs, once, and the minute is judged again at its end", async () => {
  await world.keep([...visitors, ...scanner]);
  const [one, other] = [world.createSourceDetector(), world.createSourceDetector()];
  await world.tickThrough(ATTACK - 3, ATTACK + 2, one);
  // The scanner triggers its fifteenth rule in the third minute; nothing is stored at its beginning.
  expect(await world.readSpikes()).toEqual([]);
  const during = (ATTACK + 2) * MINUTE_MS + 30_000;
  await world.tickAt(during, one);
  await world.tickAt(during + 1_000, other);
  await world.tickAt(during + 2_000, one);
  const [early, ...others] = await world.readSpikes();
  expect(others).toEqual([]);
  expect(early?.openedAt.getTime()).toBe(during);
  expect(minuteOf(early?.judgedThrough ?? null)).toBe(ATTACK + 2);
  await world.tickThrough(ATTACK + 2, ATTACK + 60, async () => void (await Promise.all([one(), other()])));
  const [spike, ...more] = (await world.readSpikes()).filter(({ kind }) => kind === "sources");
  expect(more).toEqual([]);
  expect(spike?.openedAt.getTime()).toBe(during);
  const [first, ...messages] = replay([...visitors, ...scanner]);
  expect(first?.at).toBe(ATTACK + 3);
  expect(minuteOf(spike?.closedAt ?? null)).toBe(messages.at(-1)?.at);
  expect(spike?.sources?.findings).toMatchObject([{ since: ATTACK + 3, members: 40 }]);
  const counted = await readCounted();
  await database.pool.query("truncate source_hours, source_usual");
  await world.tickThrough(ATTACK + 60, ATTACK + 65, world.createSourceDetector());
  expect(await readCounted()).toEqual(counted);
});

test("an hour of which a watch has missed an event is counted again from its events", async () => {
  await world.keep(visitors);
  const ticks = world.createSourceDetector();
  await world.tickThrough(ATTACK - 1, ATTACK + 59, ticks);
  // They are stored, and no roll-up has counted them when the hour ends.
  await storeAll(database, network, { zoneId: ZONE });
  await world.tickThrough(ATTACK + 59, ATTACK + 61, ticks);
  const hour = Math.floor(ATTACK / 60);
  const { hours } = await readCounted();
  expect(hours.find(({ starts_at }) => starts_at.getTime() === hour * 60 * MINUTE_MS)).toMatchObject({
    is_stale: false,
    peaks: expect.arrayContaining([60]) as number[],
  });
  const span = { fromHour: hour, toHour: hour + 1, known: NO_KNOWN };
  expect(await compareSourceHours(database.db, ZONE, span)).toEqual([]);
});

test("an address that was erased while its hour was counted does not become usual", async () => {
  await world.keep([...visitors, ...scanner]);
  const ticks = world.createSourceDetector();
  await world.tickThrough(ATTACK - 1, ATTACK + 20, ticks);
  await database.pool.query("update waf_events set ip = 'erased' where ip = '198.51.100.7'");
  await database.pool.query(
    `insert into erasures (requested_at, until_at, family, prefix, include_masked, key_id, hash, counts)
     values (now(), now(), 4, 32, false, 'key', 'hash', '{}')`,
  );
  await world.tickThrough(ATTACK + 20, ATTACK + 61, ticks);
  expect((await readCounted()).usual).toEqual([]);
  await database.pool.query("truncate erasures");
});

test("late events of a judged minute are judged, and their hours are counted again", async () => {
  await world.keep(visitors);
  const ticks = world.createSourceDetector();
  await world.tickThrough(ATTACK + 12, ATTACK + 14, ticks);
  expect(await world.readSpikes()).toEqual([]);
  await storeAll(database, scanner, { zoneId: ZONE });
  const early = eventAt(ATTACK - 1_500, "late", { ip: "198.51.100.9", ruleId: "1" });
  await storeAll(database, [early], { zoneId: ZONE });
  await createRollUp(database)();
  await world.tickThrough(ATTACK + 14, ATTACK + 15, ticks);
  const [spike] = await world.readSpikes();
  expect(spike).toMatchObject({ kind: "sources", ruleId: "(sources)" });
  expect(spike?.sources?.findings[0]).toMatchObject({ kind: "rules_per_ip", key: "198.51.100.7" });
  const hour = Math.floor((ATTACK - 1_500) / 60);
  const { rows } = await database.pool.query(
    "select is_stale from source_hours where starts_at = to_timestamp($1::float8 * 3600)",
    [hour],
  );
  expect(rows).toEqual([{ is_stale: false }]);
});

test("events that a backfill brings later are a zone's history", async () => {
  const isRecent = ({ occurredAt }: WafEvent) => occurredAt > (END - 1_200) * MINUTE_MS;
  await world.keep([...visitors.filter(isRecent), ...network]);
  const reached = new Date((END - 28 * 60) * MINUTE_MS);
  await database.pool.query("update coverage_windows set searched_through = null where starts_at < $1", [
    reached,
  ]);
  const ticks = world.createSourceDetector();
  await world.tickThrough(ATTACK + 24, ATTACK + 26, ticks);
  expect(await world.readSpikes()).toEqual([]);
  await world.keep(visitors.filter((event) => !isRecent(event)));
  await world.tickThrough(ATTACK + 26, ATTACK + 30, ticks);
  expect(await world.readSpikes()).toMatchObject([{ kind: "sources", zoneId: ZONE }]);
});

test("in a zone's first day a scanner opens an incident as in a replay, and many addresses with one fingerprint open none", async () => {
  const young = visitors.filter(({ occurredAt }) => occurredAt > (ATTACK - 60) * MINUTE_MS);
  const events = [...young, ...scanner, ...network];
  await world.keep(events);
  await world.tickThrough(ATTACK - 3, ATTACK + 30, world.createSourceDetector());
  const spikes = (await world.readSpikes()).filter(({ kind }) => kind === "sources");
  const found = spikes.map(({ openedAt, sources }) => ({
    at: minuteOf(openedAt),
    attackers: sources?.findings.map(({ kind, key }) => ({ kind, key })),
  }));
  const firsts = replay(events).filter(({ reason }) => reason === "first");
  expect(found).toEqual(firsts.map(({ at, attackers }) => ({ at, attackers })));
  expect(found).toMatchObject([{ attackers: [{ kind: "rules_per_ip", key: "198.51.100.7" }] }]);
});

test("a flood of one address with few rules opens an incident while the minute runs, and later judgements count each event once", async () => {
  const finder = (minute: number, events: number) =>
    Array.from({ length: events }, (_, i) =>
      eventAt(minute, `finder/${i}`, {
        ip: "198.51.100.8",
        ruleId: `93${i % 3}100`,
        url: `/backup-${i}.zip`,
      }),
    );
  await world.keep([
    ...visitors,
    ...finder(ATTACK, 60),
    ...finder(ATTACK + 1, 80),
    ...finder(ATTACK + 2, 120),
  ]);
  const ticks = world.createSourceDetector();
  // A minute that comes halfway to the line has the next one looked at while it runs.
  await world.tickThrough(ATTACK - 3, ATTACK + 1, ticks);
  for (const second of [15, 30, 45]) await world.tickAt((ATTACK + 1) * MINUTE_MS + second * 1_000, ticks);
  await world.tickThrough(ATTACK + 1, ATTACK + 2, ticks);
  expect(await world.readSpikes()).toEqual([]);
  await world.tickAt((ATTACK + 2) * MINUTE_MS + 30_000, ticks);
  const [spike, ...others] = await world.readSpikes();
  expect(others).toEqual([]);
  expect(spike?.sources?.findings).toMatchObject([
    { key: "198.51.100.8", count: 120, threshold: 100, burst: { events: 120, rules: 3 } },
  ]);
});

test("the addresses of a masked log count as one each, and the spike says so", async () => {
  const masked = network.map((event, i) => ({ ...event, ip: `203.0.${i}.*` }));
  await world.keep([...visitors, ...masked]);
  await world.tickThrough(ATTACK + 20, ATTACK + 32, world.createSourceDetector());
  const [spike] = await world.readSpikes();
  expect(spike?.sources).toMatchObject({ isMasked: true, firstSeen: ATTACK + 15 });
});

test("a further quiet minute of an open spike of sources is stored and enqueues nothing", async () => {
  await world.keep([...visitors, ...scanner]);
  let calls = 0;
  const ticks = world.createSourceDetector(undefined, undefined, () => (calls += 1));
  await world.tickThrough(ATTACK + 8, ATTACK + 16, ticks);
  expect(calls).toBeGreaterThan(0);
  const [fired] = await world.readSpikes();
  const quietFrom = (minuteOf(fired?.lastActiveAt ?? null) ?? 0) + 5;
  await world.tickThrough(ATTACK + 16, quietFrom, ticks);
  calls = 0;
  await world.tickThrough(quietFrom, quietFrom + 3, ticks);
  const [quiet] = await world.readSpikes();
  expect([calls, minuteOf(quiet?.judgedThrough ?? null), quiet?.closedAt]).toEqual([0, quietFrom + 3, null]);
});

test("an open spike of sources is closed when the series are switched off", async () => {
  let mode: SourceMode = "on";
  const ticks = world.createSourceDetector(() => mode);
  await world.keep([...visitors, ...scanner]);
  await world.tickThrough(ATTACK + 8, ATTACK + 13, ticks);
  expect(await world.readSpikes()).toMatchObject([{ kind: "sources", closedAt: null }]);
  mode = "off";
  await world.tickThrough(ATTACK + 13, ATTACK + 14, ticks);
  expect(await world.readSpikes()).toMatchObject([{ kind: "sources", closedAt: expect.any(Date) }]);
});

test("in shadow mode the spike is stored and raises no alert; switched off, nothing is judged", async () => {
  await world.keep([...visitors, ...scanner]);
  await world.tickThrough(
    ATTACK + 12,
    ATTACK + 13,
    world.createSourceDetector(() => "off"),
  );
  expect(await world.readSpikes()).toEqual([]);
  await world.tickThrough(
    ATTACK + 8,
    ATTACK + 13,
    world.createSourceDetector(() => "shadow"),
  );
  expect((await world.readSpikes()).map(({ isShadow }) => isShadow)).toEqual([true]);
  expect(await readRaisableSpikes(database.db, { closedAfterMs: 0 })).toEqual([]);
});

test("the events of known sources are left out and counted apart, and count again when they are removed", async () => {
  await world.keep([...visitors, ...scanner, ...network]);
  const list: readonly KnownSource[] = [
    { kind: "ip", pattern: "198.51.100.0/24", zoneIds: [ZONE], reason: "our scanner", untilMs: null },
  ];
  const ticks = world.createSourceDetector(undefined, () => list);
  await world.tickThrough(ATTACK + 10, ATTACK + 13, ticks);
  expect(await world.readSpikes()).toEqual([]);
  // The network of addresses is not known, and its alert says what was left out.
  const stored = { kind: "ja4", pattern: "t13d1516h2_net", reason: "a test", createdBy: "alice" } as const;
  const added = await insertKnownSource(database.db, stored);
  await world.tickThrough(ATTACK + 25, ATTACK + 29, ticks);
  expect(await world.readSpikes()).toEqual([]);
  await deleteKnownSource(database.db, added.id);
  await world.tickThrough(ATTACK + 29, ATTACK + 31, ticks);
  const [spike] = await world.readSpikes();
  expect(spike?.sources).toMatchObject({ kind: "ips_per_ja4", known: 80 });
});

test("a flood of addresses and many known sources, which change, hold up nothing else for long", async () => {
  const flood = Array.from({ length: 15_000 }, (_, i) =>
    eventAt(ATTACK, `flood/${i}`, {
      ip: `20.${i >> 8}.${i & 255}.9`,
      ruleId: `9${100 + (i % 40)}`,
      ja4: `t13d${i % 300}`,
      ua: `browser ${i % 2_000}`,
      asn: `AS${64_500 + (i % 500)}`,
      url: `/page/${i % 5_000}`,
    }),
  );
  await world.keep([...visitors, ...flood]);
  const many = (begin: string) =>
    Array.from({ length: 500 }, (_, i): KnownSource => {
      const [kind, pattern] =
        i % 2 === 0 ? (["ua", `${begin}${i}*`] as const) : (["ip", `198.18.${i % 256}.0/24`] as const);
      return { kind, pattern, zoneIds: null, reason: "monitors", untilMs: null };
    });
  let known = many("one");
  const ticks = world.createSourceDetector(undefined, () => known);
  /** The most time of the processor between two turns of the event loop: other processes do not count. */
  let longestMs = 0;
  const first = process.threadCpuUsage();
  let [isRunning, last] = [true, first];
  const turn = () => {
    const { user, system } = process.threadCpuUsage(last);
    longestMs = Math.max(longestMs, (user + system) / 1_000);
    last = process.threadCpuUsage();
    if (isRunning) setImmediate(turn);
  };
  turn();
  await world.tickThrough(ATTACK - 1, ATTACK + 2, ticks);
  known = many("two");
  await world.tickThrough(ATTACK + 2, ATTACK + 3, ticks);
  isRunning = false;
  const total = process.threadCpuUsage(first);
  expect((await world.readSpikes()).length).toBeGreaterThan(0);
  // Counted in one go, the flood takes an eighth. A machine may be slow, so no time is expected.
  expect(longestMs).toBeLessThan((total.user + total.system) / 1_000 / 12);
});

test("a source that is added in a minute changes nothing before the next one, so a zone is counted anew once in it", async () => {
  let now = ATTACK * MINUTE_MS;
  const deps = { database, clock: () => now, sourceMode: () => "on" as const, knownSources: () => [] };
  const first = await readTick(deps, new Map(), null);
  const stored = { kind: "ua", pattern: "ours*", reason: "a test", createdBy: "alice" } as const;
  const added = await insertKnownSource(database.db, stored);
  now += 59_000;
  const second = await readTick(deps, new Map(), first);
  expect(second.known(ZONE)).toBe(first.known(ZONE));
  now += 1_000;
  const third = await readTick(deps, new Map(), second);
  expect(third.known(ZONE).fingerprint).not.toBe(first.known(ZONE).fingerprint);
  await deleteKnownSource(database.db, added.id);
});

test("the first event of a source is found by its IPv6 network, and by its path whatever the host and the query", async () => {
  const at = (minute: number, name: string, event: Partial<WafEvent>) =>
    eventAt(ATTACK + minute, name, event);
  await world.keep([
    at(0, "other", { ip: "2001:db8:1:3::1", url: "/login/x" }),
    at(1, "one", { ip: "2001:db8:1:2:5::1", url: "https://shop.example/login?a=1" }),
    at(2, "two", { ip: "2001:db8:1:2::9", url: "/login#x" }),
  ]);
  const find = (kind: "rules_per_ip" | "ips_per_url", key: string) =>
    readFirstSeen(database.db, { zoneId: ZONE, kind, key, from: ATTACK, to: END }, toSourceAddress);
  expect(await find("rules_per_ip", "2001:db8:1:2::/64")).toBe(ATTACK + 1);
  expect(await find("ips_per_url", "/login")).toBe(ATTACK + 1);
  expect(await find("ips_per_url", "/lo%")).toBeNull();
});

test("a run that does not end holds up the next ones until its deadline only", async () => {
  const detect = world.createSourceDetector();
  const blocker = await database.pool.connect();
  const waiting = async () => {
    const { rowCount } = await blocker.query(
      `select from ${WAITS_HERE} and relation = 'coverage_windows'::regclass`,
    );
    return rowCount;
  };
  await blocker.query("begin; lock table coverage_windows in access exclusive mode");
  const deadline = new AbortController();
  const runs = [detect(deadline.signal)];
  await expect.poll(waiting).toBe(1);
  await detect();
  deadline.abort();
  runs.push(detect());
  await expect.poll(waiting).toBe(2);
  await blocker.query("rollback");
  blocker.release();
  await Promise.all(runs);
});

test("a value that holds the separator of a read moves no other value to another event", async () => {
  const hostile = { ua: "one\x1ftwo\nthree", url: "/a\x1f\x1f", ip: "198.51.100.1" };
  const long = { ua: "ü".repeat(500), url: `/${"x".repeat(2_000)}`, ip: "erased" };
  await world.keep([
    eventAt(ATTACK, "hostile", { ...hostile, asn: null }),
    eventAt(ATTACK + 1, "plain", { ip: "198.51.100.2", ua: "browser", asn: "AS64500", ja4: "t13d" }),
    eventAt(ATTACK + 2, "long", long),
  ]);
  const span = { zoneId: ZONE, from: ATTACK, to: ATTACK + 3 };
  const expected = [
    { minute: ATTACK, ip: "198.51.100.1", ua: "one two\nthree", url: "/a  ", asn: "", ja4: "" },
    { minute: ATTACK + 1, ip: "198.51.100.2", ua: "browser", url: "", asn: "AS64500", ja4: "t13d" },
    { minute: ATTACK + 2, ip: "", ua: "ü".repeat(300), url: `/${"x".repeat(1_023)}`, asn: "", ja4: "" },
  ];
  expect((await readEventsOfZones(database, [span], 10)).get(ZONE)).toMatchObject(expected);
  for await (const { events } of readSourceEvents(database.db, span)) expect(events).toMatchObject(expected);
  // The zone has more events than the statement may read.
  expect((await readEventsOfZones(database, [span], 3)).get(ZONE)).toBeNull();
});
