import { beforeAll, beforeEach, expect, test } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { alerts } from "#db/schema/alerts.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { judgedHours, knownSources, zoneUsual } from "#db/schema/sources.ts";
import { spikes, verdicts } from "#db/schema/spikes.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { startOfHour, toDay } from "#model/horizon.ts";
import type { SourceKind, VerdictWord } from "#model/kinds.ts";
import { type FactName, packFacts } from "#model/request-facts.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { attackerOf, incidentOf } from "#test/alerts/incident.ts";
import { insertSpike } from "#test/alerts/insert-spike.ts";
import { makeEvent, storeAll } from "#test/detection/trend-support.ts";
import { verdictOf } from "#test/support/stored-verdict.ts";
import { makeKey } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const NOW = Math.floor(Date.now() / HOUR_MS) * HOUR_MS + 30 * MINUTE_MS;
const ATTACKER = "203.0.113.9";
/** Attacks with the fingerprint. */
const SHARING = "192.0.2.7";
const JA4 = "t13d1516h2_8daaf6152771_b186095e22b6";
const HOSTILE_TEXT = 'x"\n203.0.113.200 # ; deny all; \\ \u2028<script>';

beforeAll(async () => {
  const days = Array.from({ length: 41 }, (_, day) => toDay(NOW - day * DAY_MS));
  await ensurePartitions(world.database(), days);
});
beforeEach(async () => {
  // A `truncate` would make new files for each of 41 days.
  await world.database().pool.query(
    `delete from waf_events; delete from erasures; delete from verdicts; delete from alerts; delete from spikes;
       delete from known_sources; delete from zone_usual; delete from platform_health`,
  );
  await watch(NOW);
});

/** Notes that the events of the zone were read and judged until then. */
async function watch(at: number) {
  const { db, pool } = world.database();
  const startsAt = new Date(startOfHour(at));
  await pool.query("delete from judged_hours; delete from coverage_windows");
  await db
    .insert(coverageWindows)
    .values({ zoneId: 101, startsAt, state: "open", searchedThrough: new Date(at) });
  await db
    .insert(judgedHours)
    .values({ zoneId: 101, startsAt, rulesFrom: startsAt, rulesThrough: new Date(at) });
}

interface Sent {
  readonly ip?: string;
  readonly ja4?: string;
  readonly asn?: string;
  readonly ua?: string;
  readonly facts?: Partial<Record<FactName, boolean>>;
  readonly times?: number;
}

const RULE_SPIKE = { kind: "spike", ruleId: "942100", sources: null, incident: "" } as const;

let ids = 0;
/** Stores requests of a sender at a time. */
async function send(
  at: number,
  { ip = ATTACKER, ja4 = "", asn = "", ua = "x", facts = {}, times = 1 }: Sent = {},
) {
  const none = { hasSession: null, hasOwnReferer: null, hasIdiom: null, isTool: null, hasBody: null };
  const events = Array.from({ length: times }, (_, index) => {
    ids += 1;
    const request = { requestId: `r${ids}`, facts: packFacts({ ...none, ...facts }) };
    return makeEvent({
      logId: `l${ids}`,
      occurredAt: at + index,
      ip,
      ja4,
      asn,
      ua,
      url: "https://a.test/",
      ...request,
    });
  });
  await storeAll(world.database(), events);
}

interface Incident {
  readonly at?: number;
  readonly key?: string;
  readonly kind?: SourceKind;
  readonly said?: VerdictWord;
  readonly odds?: number;
  readonly verdict?: Partial<StoredVerdict>;
  readonly over?: Partial<typeof spikes.$inferInsert>;
}

/** Stores an incident with one attacker, its alert and its verdict. */
async function attack({
  at = NOW - HOUR_MS,
  key = ATTACKER,
  kind = "rules_per_ip",
  said = "attack",
  odds = 0.93,
  verdict = {},
  over = {},
}: Incident = {}) {
  const { db } = world.database();
  const openedAt = new Date(at);
  const attacker = { ...attackerOf(key), kind, since: at / MINUTE_MS, lastFiredAt: at / MINUTE_MS + 1 };
  const times = { openedAt, lastActiveAt: openedAt, closedAt: new Date(at + MINUTE_MS) };
  const id = await insertSpike(db, { ...times, ...incidentOf(attacker), incident: String(ids++), ...over });
  const fingerprint = `f${ids++}`;
  const [alert] = await db
    .insert(alerts)
    .values({ zoneId: 101, spikeId: id, firedAt: openedAt, kind: "sources", fingerprint })
    .returning({ id: alerts.id });
  const likeliest = said === "unclear" ? "attack" : said;
  const stored = verdictOf({ said, likeliest, odds, judgedAt: at + MINUTE_MS, ...verdict });
  await db.insert(verdicts).values({
    spikeId: id,
    zoneId: 101,
    look: "first",
    said,
    judgedAt: new Date(at + MINUTE_MS),
    verdict: stored,
  });
  return { id, alertId: alert?.id ?? 0 };
}

interface Listed {
  readonly items: readonly {
    kind: string;
    value: string;
    reason: string;
    alert: number;
    until: string;
    lastSeen: string;
    firstSeen: string;
  }[];
  readonly leftOut: readonly { reason: string; attackers: number }[];
  readonly dryRun: Record<string, unknown> | null;
}

let service: { readonly test: string | undefined; readonly ask: () => Promise<Listed> } | null = null;
/** The list as a service shows it: each time five minutes later, so that it is made again. */
async function list(): Promise<Listed> {
  const { currentTestName: current } = expect.getState();
  if (service === null || service.test !== current) {
    let now = NOW - 300_000;
    const { url, lines } = await world.start({ clock: () => now });
    const key = await world.key("reader");
    const read = () =>
      ask<Listed>(url, "/api/v1/blocklist?zone=101&form=json", key).catch((thrown: unknown) => {
        throw new Error(lines.filter((line) => line.includes("failed")).join(), { cause: thrown });
      });
    service = { test: current, ask: () => ((now += 300_000), read()) };
  }
  return service.ask();
}

test("an attacker of an incident is listed until 24 hours after its last request, with reason, alert and times", async () => {
  const { alertId } = await attack();
  await attack({ key: "192.0.2.99", said: "misfire" });
  await send(NOW - 70 * MINUTE_MS);
  await send(NOW - 20 * MINUTE_MS, { facts: { hasIdiom: true } });

  expect(await list()).toMatchObject({
    items: [
      {
        kind: "address",
        value: ATTACKER,
        reason: `alert ${alertId}, attack, odds 0.93: Probably an attack`,
        alert: alertId,
        firstSeen: new Date(NOW - 70 * MINUTE_MS).toISOString(),
        lastSeen: new Date(NOW - 20 * MINUTE_MS).toISOString(),
        until: new Date(NOW - 20 * MINUTE_MS + DAY_MS).toISOString(),
      },
    ],
    leftOut: [{ reason: "not-hostile", attackers: 1 }],
  });
});

test("the attacker of an incident that is only recorded is not listed", async () => {
  await attack({ over: { isShadow: true } });
  await send(NOW - HOUR_MS);

  expect((await list()).items).toEqual([]);
});

test("an entry ends", async () => {
  await attack({ at: NOW - 25 * HOUR_MS });
  await send(NOW - 25 * HOUR_MS);

  expect(await list()).toMatchObject({ items: [], leftOut: [{ reason: "over", attackers: 1 }] });
});

const VISITOR = { hasSession: true, hasOwnReferer: true } as const;

test("of a rule that is attacked, the addresses that attack it are listed, and no visitor who matches it", async () => {
  const at = NOW - HOUR_MS;
  await attack({ over: { ...RULE_SPIKE, lastActiveAt: new Date(at + MINUTE_MS) } });
  await send(at, { ip: "192.0.2.7", times: 2 });
  await send(at, { ip: "192.0.2.8", facts: VISITOR });
  await send(at - 5 * HOUR_MS, { ip: "192.0.2.9" });

  expect(await list()).toMatchObject({ items: [{ kind: "address", value: "192.0.2.7", requests: 2 }] });
});

test("an address from which visitors came in 30 days is never listed, and one of an older visitor is", async () => {
  await attack();
  await send(NOW - HOUR_MS, { facts: { hasIdiom: true } });
  await send(NOW - 31 * DAY_MS, { facts: VISITOR });
  expect((await list()).items).toHaveLength(1);
  await send(NOW - 29 * DAY_MS, { facts: VISITOR, ua: "Mozilla/5.0" });

  expect(await list()).toMatchObject({ items: [], leftOut: [{ reason: "visitors", attackers: 1 }] });
});

test("two signs make a visitor: a session with a usual fingerprint does, and a session alone does not", async () => {
  await attack();
  await send(NOW - HOUR_MS, { facts: { hasIdiom: true } });
  await send(NOW - 3 * DAY_MS, { facts: { hasSession: true }, ja4: JA4 });
  expect((await list()).items).toHaveLength(1);
  await world
    .database()
    .db.insert(zoneUsual)
    .values({ zoneId: 101, dimension: "ja4", value: JA4, since: new Date(NOW - 20 * DAY_MS) });

  expect((await list()).leftOut).toEqual([{ reason: "visitors", attackers: 1 }]);
});

test("an address whose events were erased is not listed, even while its incident still names it", async () => {
  await attack();
  await send(NOW - HOUR_MS);
  const { url } = await world.start({ clock: () => NOW });
  const key = await world.key("feed");
  const read = async () =>
    (await fetch(`${url}/api/v1/blocklist?zone=101`, { headers: { AccessKey: key } })).text();
  expect(await read()).toContain(ATTACKER);
  await world.database().pool.query("update waf_events set ip = 'erased'");
  await world.database().pool.query(
    `insert into erasures (requested_at, until_at, family, prefix, include_masked, key_id, hash, counts)
     values (now(), now(), 4, 32, false, 'k', 'h', '{}')`,
  );

  expect(await read()).not.toContain(ATTACKER);
});

test("known sources and crawlers are never listed", async () => {
  await attack();
  await send(NOW - HOUR_MS, { asn: "AS64500", facts: { hasIdiom: true } });
  await world
    .database()
    .db.insert(knownSources)
    .values({ kind: "asn", pattern: "AS64500", reason: "our scanner", createdBy: "ann" });
  expect((await list()).leftOut).toEqual([{ reason: "machine", attackers: 1 }]);

  await attack({ key: "192.0.2.1", verdict: { crawler: "Googlebot" } });
  await attack({ key: "192.0.2.2" });
  await send(NOW - HOUR_MS, { ip: "192.0.2.2", asn: "15169", ua: "Googlebot/2.1" });
  expect((await list()).leftOut).toContainEqual({ reason: "machine", attackers: 2 });
});

test("a network is listed if half of its requests are hostile, and a network of IPv6 however its addresses are spelled", async () => {
  await attack({ key: "AS64501", kind: "ips_per_asn" });
  await send(NOW - HOUR_MS, { ip: "192.0.2.7", asn: "AS64501", times: 5 });
  await send(NOW - 5 * DAY_MS, { ip: "192.0.2.8", asn: "AS64501", times: 5 });
  await attack({ key: "2001:db8:0:1::/64" });
  await send(NOW - HOUR_MS, { ip: "2001:db8:0:1::9" });
  await send(NOW - HOUR_MS, { ip: "2001:0DB8::1:0:0:0:a" });
  const { items } = await list();
  expect(items.map(({ kind, value }) => `${kind} ${value}`)).toEqual([
    "address 192.0.2.7",
    "asn AS64501",
    "network 2001:db8:0:1::/64",
  ]);
  expect(items[2]).toMatchObject({ requests: 2 });
  await send(NOW - 5 * DAY_MS, { ip: "192.0.2.8", asn: "AS64501", times: 1 });

  expect((await list()).leftOut).toEqual([{ reason: "mixed", attackers: 1 }]);
});

test("a fingerprint that was usual before its incident has visitors, and one of attackers alone is listed", async () => {
  await attack({ key: JA4, kind: "ips_per_ja4" });
  await send(NOW - HOUR_MS, { ip: "192.0.2.7", ja4: JA4, times: 3 });
  expect((await list()).items).toMatchObject([{ kind: "address" }, { kind: "ja4", value: JA4 }]);
  await world
    .database()
    .db.insert(zoneUsual)
    .values({ zoneId: 101, dimension: "ja4", value: JA4, since: new Date(NOW - 20 * DAY_MS) });

  expect((await list()).leftOut).toEqual([{ reason: "visitors", attackers: 1 }]);
});

/** Requests the list as a firewall does. */
async function fetchList(url: string, key: string, query = "zone=101", headers: Record<string, string> = {}) {
  const authorization = `Basic ${Buffer.from(`feed:${key}`).toString("base64")}`;
  return fetch(`${url}/api/v1/blocklist?${query}`, { headers: { authorization, ...headers } });
}

async function addEntries() {
  await attack({ verdict: { title: HOSTILE_TEXT } });
  await send(NOW - HOUR_MS, { times: 3 });
  await attack({ key: "2001:db8:0:1::/64", verdict: { title: HOSTILE_TEXT } });
  await send(NOW - HOUR_MS, { ip: "2001:db8:0:1::9", times: 2 });
  await attack({ key: JA4, kind: "ips_per_ja4" });
  await send(NOW - HOUR_MS, { ip: SHARING, ja4: JA4 });
}

test("a feed key fetches the list as the password of HTTP Basic, and nothing else", async () => {
  await addEntries();
  const { url } = await world.start({ clock: () => NOW });
  const key = await world.key("feed", { zoneIds: [101] });

  const answer = await fetchList(url, key);
  expect(answer.status).toBe(200);
  expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  expect(answer.headers.get("cache-control")).toContain("private");
  const etag = answer.headers.get("etag") ?? "";
  expect((await answer.text()).split("\n").filter((line) => !line.startsWith("#"))).toHaveLength(4);
  const again = await fetchList(url, key, "zone=101", { "if-none-match": etag });
  expect([again.status, again.headers.get("etag"), await again.text()]).toEqual([304, etag, ""]);
  const authorization = `Basic ${Buffer.from(`feed:${key}`).toString("base64")}`;
  const head = await fetch(`${url}/api/v1/blocklist?zone=101`, {
    method: "HEAD",
    headers: { authorization },
  });
  expect([head.status, head.headers.get("etag")]).toEqual([200, etag]);
  expect((await fetchList(url, key, "zone=102")).status).toBe(403);
  expect((await fetchList(url, key, "zone=101&dryRun=true")).status).toBe(403);
  for (const path of ["/api/v1/alerts", "/api/v1/status", "/metrics", "/session", "/api/v1/keys", "/apikey"])
    expect([path, (await fetch(`${url}${path}`, { headers: { AccessKey: key } })).status]).toEqual([
      path,
      403,
    ]);
  // No other route takes a password.
  const reader = await world.key("reader");
  const basic = { authorization: `Basic ${Buffer.from(`x:${reader}`).toString("base64")}` };
  expect((await fetch(`${url}/api/v1/alerts`, { headers: basic })).status).toBe(401);
  const wrong = await fetchList(url, "wrong");
  expect([wrong.status, wrong.headers.get("www-authenticate")]).toEqual([
    401,
    'AccessKey, Basic realm="longwatch", charset="UTF-8"',
  ]);
  const signIn = {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ key }),
  };
  expect((await fetch(`${url}/session`, signIn)).status).toBe(403);
});

test("every form escapes hostile reasons, and holds the entries that it can", async () => {
  await addEntries();
  const { url } = await world.start({ clock: () => NOW });
  const key = await world.key("feed");
  const read = async (form: string) => (await fetchList(url, key, `zone=101&form=${form}`)).text();
  const bare = (text: string) =>
    text
      .split("\n")
      .map((line) => line.replace(/ ?#.*$/, ""))
      .filter((line) => line !== "");

  expect(bare(await read("text"))).toEqual([ATTACKER, "2001:db8:0:1::/64", SHARING]);
  expect(bare(await read("nginx"))).toEqual([
    `deny ${ATTACKER};`,
    "deny 2001:db8:0:1::/64;",
    `deny ${SHARING};`,
  ]);
  const comment = '"until [0-9TZ:.-]+, [^"\\\\]*"';
  const set = (family: string, name: string, ...values: readonly string[]) => [
    `create ${name} hash:net family ${family} maxelem 65536 comment -exist`,
    `create ${name}-new hash:net family ${family} maxelem 65536 comment -exist`,
    `flush ${name}-new`,
    ...values.map((value) => `add ${name}-new ${value} comment ${comment} -exist`),
    `swap ${name}-new ${name}`,
    `destroy ${name}-new`,
  ];
  const lines = (await read("ipset")).split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  const expected = [
    ...set("inet", "longwatch-101-4", ATTACKER, SHARING),
    ...set("inet6", "longwatch-101-6", "2001:db8:0:1::/64"),
  ];
  expect(lines).toHaveLength(expected.length);
  for (const [index, line] of lines.entries()) expect(line).toMatch(new RegExp(`^${expected[index]}$`));
  expect(JSON.parse(await read("access-list"))).toEqual([
    expect.objectContaining({ name: "longwatch-101-address", type: 0, content: `${ATTACKER}\n${SHARING}` }),
    expect.objectContaining({ name: "longwatch-101-network", type: 1, content: "2001:db8:0:1::/64" }),
    expect.objectContaining({ name: "longwatch-101-ja4", type: 5, content: JA4 }),
  ]);
  expect(JSON.parse(await read("json"))).toMatchObject({ zone: 101, items: [{}, {}, {}, {}] });
});

test("a long list is sent compressed, the heaviest first", async () => {
  const keys = Array.from({ length: 40 }, (_, n) => `198.18.0.${n + 1}`);
  const since = (NOW - HOUR_MS) / MINUTE_MS;
  await attack({
    over: incidentOf(...keys.map((key) => ({ ...attackerOf(key), since, lastFiredAt: since + 1 }))),
  });
  const events = keys.map((ip, n) =>
    makeEvent({ logId: `m${n}`, occurredAt: NOW - HOUR_MS + n, ip, requestId: `m${n}` }),
  );
  await storeAll(world.database(), events);
  await send(NOW - HOUR_MS, { ip: keys.at(-1) ?? "", times: 9 });
  const { url } = await world.start({ clock: () => NOW });
  const authorization = `Bearer ${await world.key("feed")}`;

  const answer = await fetch(`${url}/api/v1/blocklist?zone=101`, {
    headers: { authorization, "accept-encoding": "gzip" },
  });
  expect(answer.headers.get("content-encoding")).toBe("gzip");
  const lines = (await answer.text()).split("\n").filter((line) => /^\d/.test(line));
  expect(lines).toHaveLength(keys.length);
  expect(lines[0]).toContain(keys.at(-1));
});

test("a zone without attackers has an empty list, and a zone whose events are not read or judged has none", async () => {
  expect(await list()).toMatchObject({ items: [], leftOut: [] });
  await watch(NOW - 2 * HOUR_MS);
  const { url } = await world.start({ clock: () => NOW });
  const problem = await ask(url, "/api/v1/blocklist?zone=101", await world.key("feed"), { status: 503 });

  expect(problem).toMatchObject({ type: "urn:longwatch:problem:no-block-list" });
  expect(problem["detail"]).toMatch(
    /^The block list cannot be made: its events are read and judged only up to /,
  );
});

test("a list that was full is never empty without a reason: the answer is 503 with the age of the last good list", async () => {
  await addEntries();
  let now = NOW;
  const { url } = await world.start({ clock: () => now });
  const key = await world.key("feed");
  expect((await fetchList(url, key)).status).toBe(200);
  await world.database().pool.query("truncate spikes cascade");
  now += 10 * MINUTE_MS;
  await watch(now);

  const lost = await fetchList(url, key);
  expect([lost.status, lost.headers.get("retry-after")]).toEqual([503, "60"]);
  expect(await lost.json()).toMatchObject({
    detail: expect.stringMatching(
      /incidents are gone.* The last good one is 10 min old and had 4 entries\.$/,
    ),
  });
  await attack({ said: "misfire" });
  expect(await (await fetchList(url, key)).text()).toMatch(/^# .*: 0 entries\n$/);
});

test("a process that has just started knows the last good list of another one", async () => {
  await addEntries();
  await world
    .database()
    .pool.query("insert into platform_health (zone_id, watched_since) values (101, now())");
  const key = await world.key("feed");
  expect((await fetchList((await world.start({ clock: () => NOW })).url, key)).status).toBe(200);
  await world.database().pool.query("truncate spikes cascade");
  const now = NOW + 10 * MINUTE_MS;
  await watch(now);

  const lost = await fetchList((await world.start({ clock: () => now })).url, key);
  expect(lost.status).toBe(503);
  expect(await lost.json()).toMatchObject({
    detail: expect.stringMatching(
      /incidents are gone.* The last good one is 10 min old and had 4 entries\.$/,
    ),
  });
});

test("without a database the answer says how old the last good list is", async () => {
  await addEntries();
  const failing = { isDown: false };
  const { url } = await world.start(
    { clock: () => NOW },
    {
      authenticate: async (key) => {
        if (failing.isDown) throw new Error("no connection");
        return {
          keyId: key,
          name: key,
          roles: ["feed"],
          scopes: new Set(["feed"] as const),
          zoneIds: null,
          masked: false,
        };
      },
    },
  );
  expect((await fetchList(url, "k")).status).toBe(200);
  failing.isDown = true;

  const answer = await fetchList(url, "k");
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "60"]);
  expect(await answer.json()).toMatchObject({
    detail: expect.stringContaining("The last good one is 0 s old and had 4 entries."),
  });
});

test("a masked key reads no list, a feed key is never masked, and wrong input names field, value and rule", async () => {
  const { url } = await world.start({ clock: () => NOW });
  const masked = await world.key("reader", { isMasked: true });
  await ask(url, "/api/v1/blocklist?zone=101", masked, { status: 403 });
  const body = JSON.stringify({ name: "fw", role: "feed", masked: true });
  const admin = (await makeKey(world.database(), "admin")).key;
  expect(await ask(url, "/api/v1/keys", admin, { method: "POST", body, status: 400 })).toMatchObject({
    mistakes: [
      { field: "role", value: "feed", rule: "is never masked, because a block list has whole addresses" },
    ],
  });
  const key = await world.key("feed");
  expect(await ask(url, "/api/v1/blocklist?zone=101&form=pf", key, { status: 400 })).toMatchObject({
    mistakes: [
      { field: "form", value: '"pf"', rule: "must be one of text, json, ipset, nginx, access-list" },
    ],
  });
  expect(await ask(url, "/api/v1/blocklist?zone=999", key, { status: 422 })).toMatchObject({
    mistakes: [{ field: "zone", value: '"999"', rule: expect.stringContaining("must be a shield zone") }],
  });
});

test("a dry run tries each day's list on that day, and names the visitors that it would have hit", async () => {
  await attack({ at: NOW - 3 * DAY_MS - HOUR_MS });
  await send(NOW - 3 * DAY_MS - HOUR_MS, { times: 4 });
  await send(NOW - 2.5 * DAY_MS, { times: 5, facts: { hasIdiom: true } });
  await send(NOW - 2.4 * DAY_MS, { times: 2, facts: VISITOR, ua: "Mozilla/5.0" });
  const { url } = await world.start({ clock: () => NOW });
  const { dryRun } = await ask<Listed>(
    url,
    "/api/v1/blocklist?zone=101&dryRun=true",
    await world.key("reader"),
  );

  expect(dryRun).toMatchObject({
    stopped: { hostile: 5, machine: 0, visitor: 2, unknown: 0 },
    all: { hostile: 9, machine: 0, visitor: 2, unknown: 0 },
    hit: [{ ip: ATTACKER, requests: 2, entry: `address ${ATTACKER}` }],
  });
});
