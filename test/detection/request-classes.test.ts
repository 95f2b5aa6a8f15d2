import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { duck } from "#archive/rules/sql/to-condition.ts";
import { knownSources, zoneUsual } from "#db/schema/sources.ts";
import { spikes, verdicts } from "#db/schema/spikes.ts";
import { readRequests } from "#detection/review/open-review.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import type { RequestClass } from "#model/kinds.ts";
import { packFacts } from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../archive/archive-folder.ts";
import { openArchiveWorld } from "../archive/files/archive-world.ts";
import { makeEvent } from "./trend-support.ts";
import { newSpike } from "./verdict/verdict-world.ts";

/** The first day is in the archive, the others in Postgres. */
const DAY = "2026-11-10";
const START = Date.parse(DAY);
const NOON = START + 12 * HOUR_MS;
const SPAN = { from: START, to: START + 8 * DAY_MS };
const RULE = "942100";

const world = await openArchiveWorld();
let folder: ArchiveFolder;

const NOTHING = { hasSession: false, hasOwnReferer: false, hasIdiom: false, isTool: false, hasBody: null };
const CHROME = "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0";

interface Sent extends Partial<Omit<WafEvent, "facts">> {
  readonly facts?: Partial<typeof NOTHING>;
  readonly rules?: readonly string[];
}

let ids = 0;
/** The events of one request, one for each of its rules. The request's name says what is expected of it. */
function send(name: string, { facts = {}, rules = [RULE], ...fields }: Sent): WafEvent[] {
  return rules.map((ruleId) => {
    ids += 1;
    return makeEvent({
      occurredAt: NOON,
      logId: `e${ids}`,
      requestId: name,
      ip: "203.0.113.9",
      asn: "64500",
      ja4: "unknown-ja4",
      ua: CHROME,
      url: `https://shop.example.test/search?q=${name}`,
      action: "log",
      feature: "waf",
      facts: packFacts({ ...NOTHING, ...facts }),
      ...fields,
      ruleId,
    });
  });
}

const read = async (zoneId = 101, span = SPAN) => {
  const { rows, olderDays } = await readRequests(
    { queries: world.database, files: folder.files },
    { zoneId, span, knownSources: [], actions: BUILT_IN_ACTIONS },
    {
      texts: ["path", "ip"],
      write: ({ requests }) =>
        duck`select json_object('path', path, 'ip', ip, 'class', class, 'stopped', is_stopped, 'day', day, 'rules',
          (select count(*) from request_rules where (w0 & r.w0) > 0)) from (${requests}) r order by first_at, path`,
    },
    new AbortController().signal,
  );
  type Row = { path: string; ip: string; class: RequestClass; stopped: boolean; rules: number; day: number };
  return { rows: rows.map((row) => JSON.parse(row) as Row), olderDays };
};

const at = (day: number) => START + day * DAY_MS + 12 * HOUR_MS;
const path = (name: string) => ({ url: `https://shop.example.test/${name}` });
/** What every request of one path is expected to be. */
const EXPECTED: Record<string, RequestClass> = {};
function expected(is: RequestClass, name: string, sent: Sent = {}): WafEvent[] {
  EXPECTED[`/${name}`] = is;
  return [0, 3].flatMap((day) =>
    send(`${name}-${day}`, {
      ip: `203.0.113.${Object.keys(EXPECTED).length}`,
      ...path(name),
      ...sent,
      occurredAt: at(day),
    }),
  );
}

beforeAll(async () => {
  folder = await openFolder();
  const { db } = world.database;
  await db.insert(zoneUsual).values([
    { zoneId: 101, dimension: "ja4", value: "usual-ja4", since: new Date(START) },
    { zoneId: 101, dimension: "asn", value: "64501", since: new Date(START) },
    { zoneId: 101, dimension: "ja4", value: "tool-ja4", since: new Date(START) },
    { zoneId: 101, dimension: "asn", value: "64502", since: new Date(START) },
    { zoneId: 101, dimension: "ja4", value: "later-ja4", since: new Date(SPAN.to - DAY_MS) },
  ]);
  await db.insert(knownSources).values([
    { kind: "ip", pattern: "198.51.100.0/24", reason: "our scanner", createdBy: "anna" },
    { kind: "ua", pattern: "Pingdom*", reason: "monitor", createdBy: "anna" },
    { kind: "asn", pattern: "64700", reason: "office", createdBy: "anna" },
  ]);
  await db.insert(spikes).values(
    [
      { ruleId: "931100", mark: "misfire" as const },
      { ruleId: "932100", mark: "attack" as const },
      { ruleId: "933100", mark: null },
    ].map(({ ruleId, mark }) => ({
      ...newSpike(NOON - HOUR_MS, { ruleId }),
      mark,
      markedAt: mark === null ? null : new Date(NOON),
      lastActiveAt: new Date(START + 6 * DAY_MS),
      closedAt: new Date(START + 6 * DAY_MS),
    })),
  );
  const events = [
    ...expected("visitor", "session-and-referer", {
      facts: { hasSession: true, hasOwnReferer: true },
      ja4: "usual-ja4",
      asn: "64501",
    }),
    // Passing tools are usual, too, and have no sessions.
    ...expected("unknown", "usual-tools", { ja4: "tool-ja4", asn: "64502" }),
    ...expected("hostile", "wp-config.php.bak", { facts: { hasSession: true } }),
    ...expected("unknown", ".well-known/security.txt"),
    ...expected("visitor", "about-attacks", {
      facts: { hasSession: true, hasOwnReferer: true, hasIdiom: true },
      ja4: "usual-ja4",
    }),
    ...expected("visitor", "usual-ja4-and-network", { ja4: "usual-ja4", asn: "64501" }),
    ...expected("unknown", "session-only", { facts: { hasSession: true } }),
    ...expected("unknown", "ja4-not-yet-usual", { ja4: "later-ja4", facts: { hasSession: true } }),
    ...expected("unknown", "no-sign"),
    ...expected("hostile", "idiom", { facts: { hasSession: true, hasOwnReferer: true, hasIdiom: true } }),
    ...expected("hostile", "tool", { facts: { isTool: true } }),
    ...expected("machine", "known-network", { ip: "198.51.100.7", facts: { hasIdiom: true } }),
    ...expected("machine", "known-agent", { ua: "Pingdom.com_bot_1.4" }),
    ...expected("machine", "known-asn", { asn: "AS64700 Office" }),
    ...expected("machine", "googlebot", { ua: "Mozilla/5.0 (compatible; Googlebot/2.1)", asn: "AS15169" }),
    ...expected("unknown", "forged-googlebot", {
      ua: "Mozilla/5.0 (compatible; Googlebot/2.1)",
      asn: "64999",
    }),
    ...expected("visitor", "misfire", { facts: { hasSession: true, hasIdiom: true }, rules: ["931100"] }),
    ...expected("hostile", "attacked-rule", { facts: { hasSession: true }, rules: ["932100"] }),
    ...expected("visitor", "visitor-in-attack", {
      facts: { hasSession: true, hasOwnReferer: true },
      rules: ["932100"],
    }),
    ...expected("unknown", "unclear-spike", { rules: ["933100"] }),
    // Two rules on other paths are not yet an attacker's; three are.
    ...expected("unknown", "two-elsewhere", { ip: "192.0.2.1" }),
    ...[0, 3].flatMap((day) =>
      send("x", {
        ip: "192.0.2.1",
        occurredAt: at(day) + 9_000,
        ...path("x"),
        requestId: null,
        rules: ["1", "2", "949110"],
      }),
    ),
    ...expected("hostile", "three-elsewhere", {
      ip: "192.0.2.2",
      facts: { hasSession: true, hasOwnReferer: true },
    }),
    ...[0, 3].flatMap((day) =>
      send("y", {
        ip: "192.0.2.2",
        occurredAt: at(day) + 9_000,
        ...path("y"),
        requestId: null,
        rules: ["1", "2", "3"],
      }),
    ),
    // A sure visitor shares the address.
    ...expected("visitor", "sure-visitor", {
      ip: "192.0.2.2",
      ja4: "usual-ja4",
      facts: { hasSession: true, hasOwnReferer: true },
    }),
    // Four of five requests with this JA4 are attacks.
    ...expected("hostile", "attackers-program", { ja4: "attackers-ja4" }),
    ...[1, 2, 3, 4].flatMap((index) =>
      send(`w${index}`, { ip: "192.0.2.3", ja4: "attackers-ja4", facts: { hasIdiom: true }, ...path("w") }),
    ),
    // A fingerprint of one browser never names three.
    ...expected("hostile", "pretender", { ja4: "many-browsers" }),
    ...[1, 2, 3, 4, 5].flatMap((index) =>
      send(`p${index}`, {
        ip: `192.0.2.${100 + index}`,
        asn: `6490${index}`,
        ja4: "many-browsers",
        ua: index % 2 === 0 ? CHROME : "Mozilla/5.0 (X11; rv:143.0) Gecko/20100101 Firefox/143.0",
        ...path("pretends"),
      }),
    ),
    // Digits of a path are alike: most requests with a session to this path hold no idiom.
    ...expected("unknown", "free-1", { facts: { hasSession: true, hasIdiom: true } }),
    ...Array.from({ length: 10 }, (_, index) =>
      send(`f${index}`, { ip: `198.18.0.${index}`, facts: { hasSession: true }, ...path("free-2") }),
    ).flat(),
    ...expected("hostile", ".DS_Store", { facts: { hasSession: true } }),
    // A masked address stands for many people.
    ...expected("unknown", "masked", { ip: "192.0.2.*" }),
    ...[0, 3].flatMap((day) =>
      send("z", {
        ip: "192.0.2.*",
        occurredAt: at(day) + 9_000,
        ...path("z"),
        requestId: null,
        rules: ["1", "2", "3"],
      }),
    ),
    ...[0, 1, 2, 3, 4].flatMap((day) =>
      send(`m${day}`, { ip: "192.0.2.50", ua: "uptime-check/3.1", occurredAt: at(day), ...path("steady") }),
    ),
    ...[0, 1, 2].flatMap((day) =>
      send(`i${day}`, {
        ip: "192.0.2.60",
        ua: "python-requests/2.31",
        occurredAt: at(day),
        ...path("import"),
        facts: { hasIdiom: true },
        rules: ["1", "2", "3"],
      }),
    ),
    ...[0, 1, 2].flatMap((day) =>
      send(`b${day}`, {
        ip: `198.18.1.${day}`,
        ua: "Partner/5.2",
        occurredAt: at(day),
        ...path("b2b/orders"),
        facts: { hasIdiom: true },
      }),
    ),
    ...send("blocked", { rules: [RULE, "941100"], action: "log", ...path("stopped"), occurredAt: at(0) }),
    ...send("blocked", { rules: ["949110"], action: "block", ...path("stopped"), occurredAt: at(0) + 1 }),
  ];
  await world.store(events, { hasRecord: () => false });
  await archiveDay(world.database, folder, DAY);
}, 120_000);
afterAll(() => folder.close());

test("a request has the same class in a file and in Postgres", async () => {
  const { rows, olderDays } = await read();
  const found = Object.groupBy(rows, ({ path }) => path);
  const classes = Object.fromEntries(
    Object.keys(EXPECTED).map((name) => [name, found[name]?.map((row) => row.class)]),
  );
  expect(classes).toEqual(Object.fromEntries(Object.entries(EXPECTED).map(([name, is]) => [name, [is, is]])));
  expect(olderDays).toEqual([]);
});

test("a program that comes on five days with one rule is a machine", async () => {
  const { rows } = await read();
  expect(new Set(rows.filter(({ path }) => path === "/steady").map((row) => row.class))).toEqual(
    new Set(["machine"]),
  );
});

test("a program that comes on three days to one path alone is a machine, whatever it sends", async () => {
  const { rows } = await read();
  // A partner may come from another address each day.
  for (const name of ["/import", "/b2b/orders"])
    expect(rows.filter(({ path }) => path === name).map((row) => row.class)).toEqual(
      Array(3).fill("machine"),
    );
});

test("events of one name are one request, which is stopped if one of them is, and whose sums are no rules", async () => {
  const { rows } = await read();
  expect(rows.filter(({ path }) => path === "/stopped")).toMatchObject([{ stopped: true, rules: 2 }]);
  // Without a name: the same address and URL within two seconds.
  expect(rows.filter(({ path }) => path === "/x").map(({ rules }) => rules)).toEqual([2, 2]);
});

test("without sessions and referers two usual signs are those of a visitor, unless attackers have them, too", async () => {
  const zone = (name: string, sent: Sent) =>
    send(name, { ...path(name), occurredAt: at(1), asn: "64501", facts: { hasIdiom: true }, ...sent });
  await world.database.db.insert(zoneUsual).values(
    (["people-ja4", "tool-ja4"] as const).map((value) => ({
      zoneId: 103,
      dimension: "ja4" as const,
      value,
      since: new Date(START),
    })),
  );
  await world.database.db
    .insert(zoneUsual)
    .values({ zoneId: 103, dimension: "asn", value: "64501", since: new Date(START) });
  const plain = Array.from({ length: 8 }, (_, index) =>
    zone("plain", { ja4: "people-ja4", facts: {}, requestId: `plain${index}` }),
  );
  await world.store(
    [
      ...plain.flat(),
      ...zone("about-attacks", { ja4: "people-ja4" }),
      ...zone("attack", { ja4: "tool-ja4" }),
    ],
    { zoneId: 103, hasRecord: () => false },
  );
  const { rows } = await read(103);
  expect(Object.fromEntries(rows.map((row) => [row.path, row.class]))).toEqual({
    "/plain": "visitor",
    "/about-attacks": "visitor",
    "/attack": "hostile",
  });
});

test("a zone without events has no requests", async () => {
  expect((await read(199)).rows).toEqual([]);
});

test("a person's mark and the latest verdict decide what a spike says", async () => {
  const { db } = world.database;
  const [spike] = await db
    .insert(spikes)
    .values({
      ...newSpike(NOON - HOUR_MS, { ruleId: "5", zoneId: 102 }),
      lastActiveAt: new Date(NOON + HOUR_MS),
      closedAt: new Date(NOON + HOUR_MS),
    })
    .returning({ id: spikes.id });
  const id = spike?.id ?? 0;
  const event = send("late", { rules: ["5"], ...path("late"), occurredAt: NOON });
  await world.store(event, { zoneId: 102, hasRecord: () => false });
  const classOf = async () => (await read(102)).rows.map((row) => row.class);
  expect(await classOf()).toEqual(["unknown"]);
  const verdict = { look: "first", said: "attack" } as never;
  await db.insert(verdicts).values([
    { spikeId: id, zoneId: 102, look: "first", said: "misfire", judgedAt: new Date(NOON), verdict },
    {
      spikeId: id,
      zoneId: 102,
      look: "minute",
      said: "attack",
      judgedAt: new Date(NOON + MINUTE_MS),
      verdict,
    },
  ]);
  expect(await classOf()).toEqual(["hostile"]);
});

test("requests of a day whose file has no facts are unknown, and the day is named", async () => {
  const setFormat = (format: number) =>
    world.database.pool.query("update archive_files set format = $2 where day = $1", [DAY, format]);
  onTestFinished(async () => {
    await setFormat(2);
  });
  await setFormat(1);
  const { rows, olderDays } = await read();
  expect(olderDays).toEqual([DAY]);
  const first = START / DAY_MS;
  expect(new Set(rows.filter(({ day }) => day === first).map((row) => row.class))).toEqual(
    new Set(["unknown"]),
  );
  expect(rows.filter(({ day, path }) => day > first && path === "/tool").map((row) => row.class)).toEqual([
    "hostile",
  ]);
});
