import { afterAll, beforeAll, expect, test } from "vitest";
import {
  readAlertEvents,
  readLasting,
  readNearbyRules,
  readOtherEvents,
  readZoneUsual,
} from "#db/detection/verdict-evidence.ts";
import { storeVerdict } from "#db/detection/verdicts.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { spikes } from "#db/schema/spikes.ts";
import { sourceKeyOf } from "#detection/rules/sources/source-event.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS, createActionStates } from "#model/action-class.ts";
import type { SourceKind } from "#model/kinds.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { NO_FACTS, packFacts } from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { createRollUp, makeEvent, storeAll } from "../trend-support.ts";
import { newSpike, verdictOf } from "./verdict-world.ts";

const database = await createMigratedDatabase();
afterAll(() => database.drop());
const { db } = database;
const OPENED = Date.UTC(2026, 10, 20, 12);
const TO = OPENED + 25 * HOUR_MS;

const IPS = [
  "203.0.113.7",
  "203.0.113.8",
  "2001:db8:1:2::1",
  "2001:DB8:1:2:ffff::9",
  "2001:db8:1:3::1",
  "erased",
  "",
];
const URLS = [
  "https://shop.example.test/",
  "https://shop.example.test/50%25_off?q='or'1'='1",
  "https://shop.example.test/5025_off",
  "https://shop.example.test/a/50%25_off#x",
  String.raw`https://shop.example.test/back\slash`,
  `https://shop.example.test/${"long".repeat(120)}`,
  "/products/7/reviews?x=https://a/b",
  "",
];
const pick = <T>(list: readonly T[], index: number) => list[index % list.length] as T;

/** Several events of each combination, from two hours before the alert to a day after it. */
const EVENTS: readonly WafEvent[] = Array.from({ length: 2_000 }, (_, i) =>
  makeEvent({
    logId: `e${i}`,
    occurredAt: OPENED - 2 * HOUR_MS + i * 49_000,
    ruleId: pick(["942100", "941100", "", null], Math.floor(i / 8)),
    ip: pick([...IPS, null], i * 7),
    url: pick([...URLS, null], i * 11),
    ua: pick(["u".repeat(400), "Mozilla", null], i * 13),
    ja4: pick(["t13d1", "t13d2", null], i * 5),
    asn: pick(["AS64500", "AS64501", ""], i * 3),
    feature: "waf",
    action: pick(["block", "Logged", "challenge", "allow", null], i),
  }),
);

beforeAll(async () => {
  await ensurePartitions(database, ["2026-11-20", "2026-11-21"]);
  await storeAll(database, EVENTS);
  await storeAll(database, EVENTS.slice(0, 50), { zoneId: 102 });
  await createRollUp(database)();
});

const between = (from: number, to: number) =>
  EVENTS.filter(({ occurredAt }) => occurredAt >= from && occurredAt < to).toReversed();

const ofRule = (ruleId: string) => ({ zoneId: 101, ruleId, sources: null, windowMinutes: 3 });
const ofAttackers = (...findings: { kind: SourceKind; key: string }[]) => ({
  zoneId: 101,
  ruleId: "(sources)",
  sources: { findings } as never,
  windowMinutes: 3,
});

test.each(["942100", ""])(
  "the events of rule '%s' are those of the window, the newest first",
  async (ruleId) => {
    const [from, to] = [OPENED - HOUR_MS, TO];
    const found = await readAlertEvents(db, { spike: ofRule(ruleId), from, to }, BUILT_IN_ACTIONS);
    const expected = between(from, to).filter((event) => (event.ruleId ?? "") === ruleId);
    expect(found.map(({ logId }) => logId)).toEqual(expected.map(({ logId }) => logId));
    const { occurredAt, ...event } = expected.find(({ ip }) => ip === "erased") as WafEvent;
    expect(found.find(({ logId }) => logId === event.logId)).toEqual({
      at: occurredAt,
      logId: event.logId,
      ruleId: event.ruleId ?? "",
      ip: "",
      asn: event.asn ?? "",
      ja4: event.ja4 ?? "",
      ua: (event.ua ?? "").slice(0, 300),
      url: event.url ?? "",
      action: expect.stringMatching(/^(blocked|logged|challenged|other)$/),
      feature: "waf",
      facts: null,
    });
  },
);

test("the other events of a rule's requests are those with their ids, and without one those of their addresses", async () => {
  const [named, ip] = [{ requestId: "r1" }, "203.0.113.7"];
  const events = [
    { ruleId: "7", ...named },
    { ruleId: "7", ip },
    { ruleId: "8", ...named },
    { ruleId: "9", requestId: "r2", ip },
    { ruleId: "8", ip },
    { ruleId: "8", ip: "203.0.113.8" },
  ].map((event, i) => makeEvent({ ip: "", ...event, occurredAt: OPENED + i, logId: `o${i}` }));
  await storeAll(database, events, { zoneId: 104 });
  const span = { spike: { ...ofRule("7"), zoneId: 104 }, from: OPENED, to: TO };
  const read = async (one: typeof span) =>
    readOtherEvents(db, one, await readAlertEvents(db, one, BUILT_IN_ACTIONS), BUILT_IN_ACTIONS);
  expect((await read(span)).map(({ logId }) => logId).toSorted()).toEqual(["o2", "o4"]);
  const attackers = ofAttackers({ kind: "rules_per_ip", key: ip });
  expect(await read({ ...span, spike: { ...attackers, zoneId: 104 } })).toEqual([]);
});

test("an event says what became of its request by the word of its action", async () => {
  const words = ["block", "Denied", "rate_limited", "captcha", "allow", "bypass", "rewrite", null];
  const events = words.map((action, i) =>
    makeEvent({ occurredAt: OPENED + i, logId: `w${i}`, ruleId: "7", action }),
  );
  await storeAll(database, events, { zoneId: 103 });
  const spike = { ...ofRule("7"), zoneId: 103 };
  const found = await readAlertEvents(db, { spike, from: OPENED, to: TO }, BUILT_IN_ACTIONS);
  expect(found.toReversed().map(({ action }) => action)).toEqual([
    "blocked",
    "blocked",
    "blocked",
    "challenged",
    "logged",
    "logged",
    "other",
    "other",
  ]);
  const own = createActionStates({ stopped: ["Re-Write", "bypass"], through: [] });
  const again = await readAlertEvents(db, { spike, from: OPENED, to: TO }, own);
  expect(
    again
      .toReversed()
      .map(({ action }) => action)
      .slice(4),
  ).toEqual(["logged", "blocked", "blocked", "other"]);
});

test("an event has the facts of its columns, and none only if all four are null", async () => {
  const id = "facts-of-a-request";
  await storeAll(database, [makeEvent({ occurredAt: OPENED, logId: id, ruleId: "913100" })], { zoneId: 103 });
  const readWith = async (columns: string) => {
    await database.pool.query(
      `update waf_events set method = null, request_id = null, matched_key = null, facts = null where log_id = $1`,
      [id],
    );
    await database.pool.query(`update waf_events set ${columns} where log_id = $1`, [id]);
    const spike = { ...ofRule("913100"), zoneId: 103 };
    const [event] = await readAlertEvents(db, { spike, from: OPENED, to: TO }, BUILT_IN_ACTIONS);
    return event?.facts;
  };

  expect(await readWith("method = null")).toBeNull();
  expect(await readWith("method = 'POST'")).toEqual({ ...NO_FACTS, method: "POST" });
  expect(await readWith("matched_key = 0")).toEqual({ ...NO_FACTS, matchedKey: 0 });
  const known = { hasSession: true, hasOwnReferer: false, hasIdiom: null, isTool: true, hasBody: null };
  expect(await readWith(`request_id = 'r1', matched_key = -7, facts = ${packFacts(known)}`)).toEqual({
    method: "",
    requestId: "r1",
    matchedKey: -7,
    ...known,
  });
});

const KEYS = (["rules_per_ip", "ips_per_ja4", "ips_per_url", "ips_per_ua", "ips_per_asn"] as const).flatMap(
  (kind) => [...new Set(EVENTS.map((event) => sourceKeyOf(kind, event)))].map((key) => ({ kind, key })),
);

test.each(KEYS.filter(({ key }) => key !== "" && key !== "erased"))(
  "the events of an attacker $kind '$key' are those that the source series count under the key",
  async (attacker) => {
    const found = await readAlertEvents(
      db,
      { spike: ofAttackers(attacker), from: OPENED - HOUR_MS, to: TO },
      BUILT_IN_ACTIONS,
    );
    const expected = between(OPENED - HOUR_MS, TO).filter(
      (event) => sourceKeyOf(attacker.kind, event) === attacker.key,
    );
    expect(expected.length).toBeGreaterThan(0);
    expect(found.map(({ logId }) => logId)).toEqual(expected.map(({ logId }) => logId));
  },
);

test("an incident's events are those of any of its attackers, and an erased attacker has none", async () => {
  const span = { from: OPENED - HOUR_MS, to: TO };
  const erased = [
    { kind: "rules_per_ip", key: "erased" },
    { kind: "ips_per_ua", key: "" },
  ] as const;
  expect(await readAlertEvents(db, { spike: ofAttackers(...erased), ...span }, BUILT_IN_ACTIONS)).toEqual([]);
  const both = [
    { kind: "rules_per_ip", key: "203.0.113.7" },
    { kind: "rules_per_ip", key: "2001:db8:1:2::/64" },
    { kind: "ips_per_ja4", key: "t13d2" },
  ] as const;
  const found = await readAlertEvents(
    db,
    { spike: ofAttackers(...erased, ...both), ...span },
    BUILT_IN_ACTIONS,
  );
  const expected = between(span.from, span.to).filter((event) =>
    both.some(({ kind, key }) => sourceKeyOf(kind, event) === key),
  );
  expect(found.map(({ logId }) => logId)).toEqual(expected.map(({ logId }) => logId));
});

test("the rules near an alert are those of its addresses on the day before, each with its first and last path", async () => {
  const ips = ["203.0.113.7", "2001:db8:1:3::1", "' or ip <> '"];
  const found = await readNearbyRules(db, { spike: ofRule("942100"), to: TO }, ips);
  const near = between(TO - DAY_MS, TO).filter(({ ip }) => ips.includes(ip ?? ""));
  const groups = Map.groupBy(near, ({ ip, ruleId }) => `${ip} ${ruleId ?? ""}`);
  expect(found.map(({ ip, ruleId }) => `${ip} ${ruleId}`)).toEqual([...groups.keys()].sort());
  for (const { ip, ruleId, paths } of found) {
    const all = (groups.get(`${ip} ${ruleId}`) ?? []).map(({ url }) =>
      toUrlPart("path", url ?? "").slice(0, 300),
    );
    const sorted = all.sort((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)));
    expect(paths).toEqual([sorted[0], sorted.at(-1)]);
  }
});

test.each([ofRule("942100"), ofAttackers({ kind: "ips_per_ja4", key: "t13d1" })])(
  "an alert lasts as its last two hours relate to the two from its window on: %o",
  async (spike) => {
    const isOwn = (event: WafEvent) =>
      spike.sources === null ? event.ruleId === "942100" : event.ja4 === "t13d1";
    const count = (from: number, to: number) => between(from, to).filter(isOwn).length;
    const first = count(OPENED - 3 * MINUTE_MS, OPENED + 117 * MINUTE_MS);
    const now = OPENED + 6 * HOUR_MS;
    const last = count(now - 2 * HOUR_MS, now);
    expect(last).toBeGreaterThan(0);
    const opened = { ...spike, openedAt: new Date(OPENED) };
    expect(await readLasting(db, opened, now)).toBe(last / first);
    const over = OPENED + 300 * HOUR_MS;
    expect(await readLasting(db, opened, over)).toBe(0);
    expect(await readLasting(db, { ...spike, openedAt: new Date(over) }, over + 6 * HOUR_MS)).toBeNull();
  },
);

test("usual is what was usual before the time, and a session counts if a verdict of the zone has seen one", async () => {
  await database.pool.query(
    `insert into zone_usual (zone_id, dimension, value, since) values (101, 'asn', 'AS1', $1), (101, 'path', '/a', $1),
       (101, 'path', '/later', $2), (102, 'ja4', 'other', $1)`,
    [new Date(OPENED - 1), new Date(OPENED)],
  );
  const usual = await readZoneUsual(db, 101, OPENED + DAY_MS);
  expect(usual).toEqual({ values: { asn: ["AS1"], path: ["/a", "/later"] }, days: 1, hadSession: false });
  expect(await readZoneUsual(db, 101, OPENED)).toMatchObject({
    values: { asn: ["AS1"], path: ["/a"] },
    days: 0,
  });
  expect(await readZoneUsual(db, 103, OPENED)).toEqual({ values: {}, days: 0, hadSession: false });
  const [row] = await db.insert(spikes).values(newSpike(OPENED)).returning({ id: spikes.id });
  await storeVerdict(db, { id: row?.id ?? -1, zoneId: 101 }, verdictOf("first", OPENED));
  expect(await readZoneUsual(db, 101, OPENED + DAY_MS)).toMatchObject({ hadSession: true });
  expect(await readZoneUsual(db, 102, OPENED + DAY_MS)).toMatchObject({ hadSession: false });
  expect(await readZoneUsual(db, 101, OPENED + 41 * DAY_MS)).toMatchObject({ hadSession: false });
});
