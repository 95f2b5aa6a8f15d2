import { eq } from "drizzle-orm";
import { beforeEach, expect, test } from "vitest";
import { readFeed } from "#db/alerts/feed-transitions.ts";
import { auditEntries } from "#db/schema/people.ts";
import { spikes } from "#db/schema/spikes.ts";
import { toFeedEvent } from "#faces/http/feed/feed.ts";
import { NOW } from "#test/alerts/support.ts";
import { call } from "../start-archive.ts";
import { ask, askAll, openApiWorld } from "./api-world.ts";

const world = openApiWorld();

interface Item {
  readonly id: number;
  readonly zoneId: number;
  readonly ruleId: string;
}

beforeEach(() => world.alerts().clear());

/** So many alerts of rules of their own, oldest first. */
async function fire(count: number, first = 0, zoneId = 101): Promise<void> {
  const alerts = world.alerts();
  for (let n = first; n < first + count; n++) await alerts.openSpike(0, { ruleId: `9421${n + 10}`, zoneId });
  await alerts.runAt(0);
}

test("an alert is listed and shown with the message that the channels got", async () => {
  await fire(1);
  const { url } = await world.start();
  const key = await world.key("reader");
  const { items } = await ask<{ items: Item[] }>(url, "/api/v1/alerts", key);

  expect(items).toMatchObject([
    {
      state: "firing",
      severity: "warning",
      kind: "spike",
      zoneId: 101,
      ruleId: "942110",
      ruleTitle: "SQL injection",
      firedAt: "2026-11-20T15:30:00.000Z",
      transition: 1,
    },
  ]);
  expect(await ask(url, `/api/v1/alerts/${items[0]?.id}`, key)).toMatchObject({
    ...items[0],
    facts: { count: 50, usual: 2, peak: 60, sparkline: [0, 0, 3, 50] },
    evidence: { ips: [{ value: "203.0.113.7", count: 40, share: 0.8 }] },
    advice: { state: "pending", source: "platform AI" },
    transitions: [{ transition: 1, reason: "first", state: "firing", channels: ["chat", "pager"] }],
    deliveries: [
      { channel: "chat", state: "pending" },
      { channel: "pager", state: "pending" },
    ],
  });
});

test("an alert that few addresses send says why no channel is notified, until one is", async () => {
  const alerts = world.alerts();
  const spike = await alerts.openSpike(0, { addresses: 9, mainSenders: 2, gradedBy: "score" });
  await alerts.runAt(0);
  const { url } = await world.start();
  const key = await world.key("reader");
  const list = () => ask<{ items: Item[] }>(url, "/api/v1/alerts", key);
  const { items } = await list();
  expect(items).toMatchObject([{ state: "firing", unsent: "few-addresses" }]);
  const show = () => ask(url, `/api/v1/alerts/${items[0]?.id}`, key);
  expect(await show()).toMatchObject({
    transitions: [{ reason: "first", channels: [], mutedBy: "few-addresses", held: [], waiting: [] }],
    deliveries: [],
  });

  await world.database().db.update(spikes).set({ mainSenders: 3 }).where(eq(spikes.id, spike));
  await alerts.runAt(20);
  expect((await list()).items).toMatchObject([{ unsent: null }]);
  expect(await show()).toMatchObject({
    transitions: [{ mutedBy: "few-addresses" }, { mutedBy: null, channels: ["chat", "pager"] }],
  });
});

test("an alert is quiet while its spike's count is below the threshold, and its evidence begins with its window", async () => {
  const alerts = world.alerts();
  const spike = await alerts.openSpike(0);
  await alerts.runAt(0);
  const { url } = await world.start();
  const key = await world.key("reader");
  const list = () => ask<{ items: (Item & { firedAt: string })[] }>(url, "/api/v1/alerts", key);
  expect((await list()).items).toMatchObject([{ quietSince: null }]);

  const lastActiveAt = new Date("2026-11-20T15:31:00Z");
  const store = (values: Partial<typeof spikes.$inferInsert>) =>
    world.database().db.update(spikes).set(values).where(eq(spikes.id, spike));
  await store({ windowCount: 3, lastActiveAt, judgedThrough: lastActiveAt });
  expect((await list()).items).toMatchObject([{ quietSince: null }]);
  await store({ judgedThrough: new Date(lastActiveAt.getTime() + 60_000) });
  const [quiet] = (await list()).items;
  expect(quiet).toMatchObject({ state: "firing", quietSince: "2026-11-20T15:31:00.000Z" });
  expect(await ask(url, `/api/v1/alerts/${quiet?.id}`, key)).toMatchObject(quiet ?? {});
  const { during } = await ask<{ during: { from: string } }>(url, `/api/v1/alerts/${quiet?.id}/context`, key);
  expect(during.from).toBe(new Date(Date.parse(quiet?.firedAt ?? "") - 3 * 60_000).toISOString());
});

test("paging neither doubles nor loses an alert while others fire", async () => {
  await fire(25);
  const { url } = await world.start();
  const key = await world.key("reader");
  const before = await askAll<Item>(url, "/api/v1/alerts", key, 200);
  const items = await askAll<Item>(url, "/api/v1/alerts", key, 4, (page) => fire(1, 100 + page));

  expect(before).toHaveLength(25);
  expect(items.map(({ id }) => id)).toEqual(before.map(({ id }) => id));
});

test("every filter takes what it names and nothing else", async () => {
  await fire(2);
  await fire(1, 50, 102);
  const { url } = await world.start();
  const key = await world.key("operator");
  const [newest] = await askAll<Item>(url, "/api/v1/alerts", key, 10);
  await ask(url, `/api/v1/alerts/${newest?.id}/ack`, key, { method: "POST" });
  const count = async (query: string) => (await askAll(url, `/api/v1/alerts?${query}`, key, 1)).length;

  expect(await count("zone=101")).toBe(2);
  expect(await count("rule=942160")).toBe(1);
  expect(await count("rule=9421*")).toBe(3);
  expect(await count("state=acknowledged")).toBe(1);
  expect(await count("state=acknowledged,firing")).toBe(3);
  expect(await count("severity=critical")).toBe(0);
  expect(await count("severity=warning&severity=error&kind=spike")).toBe(3);
  await world.database().pool.query("update alerts set kind = 'sources' where rule_id = '942160'");
  expect(await count("kind=sources")).toBe(1);
  expect(await count("kind=sources,spike")).toBe(3);
  expect(await count("since=2026-11-20T15:30:00Z&until=2026-11-20T15:30:01Z")).toBe(3);
  expect(await count("until=2026-11-20T15:30:00Z")).toBe(0);
});

test("S3: a note that names an address has it masked in the trail, which outlives erasures, and for masked keys", async () => {
  await fire(1);
  const { url } = await world.start();
  const [key, masked] = [await world.key("operator"), await world.key("reader", { isMasked: true })];
  const [alert] = await askAll<Item>(url, "/api/v1/alerts", key, 10);
  const note = "blocked client:2a03:4ab8:5769:7::5, see...203.0.113.7 and 2001:db8:1:2::7 at 10:15";
  const hidden = "blocked client:2a03:4ab8:5769::*, see...203.0.113.* and 2001:db8:1::* at 10:15";
  const act = (path: string, body: object, status = 200) =>
    ask(url, path, key, { method: "POST", body: JSON.stringify(body), status });
  await act(`/api/v1/alerts/${alert?.id}/ack`, { note });
  await act("/api/v1/silences", { matchers: { zone: [101] }, reason: note, durationMinutes: 5 }, 201);

  const seenBy = async (who: string) =>
    JSON.stringify([
      await ask(url, `/api/v1/alerts/${alert?.id}`, who),
      await ask(url, "/api/v1/silences", who),
    ]);
  expect((await seenBy(key)).split(note)).toHaveLength(5);
  expect((await seenBy(masked)).split(hidden)).toHaveLength(5);
  expect(await seenBy(masked)).not.toContain(note);
  const feed = await readFeed(world.database().db, { after: 0, limit: 100, zoneIds: null });
  const noted = feed.map((row) => [toFeedEvent(row, false).note, toFeedEvent(row, true).note]);
  expect(noted).toContainEqual([note, hidden]);
  const audit = JSON.stringify(await world.database().db.select().from(auditEntries));
  expect(audit.split(hidden)).toHaveLength(3);
  expect(audit).not.toContain(note);
});

test("S3: a masked key reads no full address in a headline, an error of a channel or a name", async () => {
  await fire(1);
  const { url } = await world.start();
  const [key, masked] = [await world.key("operator"), await world.key("reader", { isMasked: true })];
  const [alert] = await askAll<Item>(url, "/api/v1/alerts", key, 10);
  const { pool } = world.database();
  const text = "from:203.0.113.7";
  await pool.query(
    `update alerts set acknowledged_by = $1, details = jsonb_set(details, '{message,headline}', to_jsonb($1::text)),
       transitions = jsonb_set(transitions, '{0,by}', to_jsonb($1::text))`,
    [text],
  );
  await pool.query(
    "update notifications set last_error = $1, content = jsonb_set(content, '{headline}', to_jsonb($1::text))",
    [text],
  );
  await pool.query(
    "update alert_transitions set headline = $1, entry = jsonb_set(entry, '{by}', to_jsonb($1::text))",
    [text],
  );
  await pool.query(
    `insert into silences (starts_at, expires_at, created_by, reason, matchers)
     values (now(), now() + interval '1 hour', $1, $1, '{}')`,
    [text],
  );
  const seenBy = async (who: string) => {
    const paths = ["alerts", `alerts/${alert?.id}`, "alerts.atom", "deliveries", "silences"];
    const answers = paths.map((path) => fetch(`${url}/api/v1/${path}`, { headers: { AccessKey: who } }));
    return Promise.all(answers.map(async (answer) => (await answer).text()));
  };
  for (const body of await seenBy(key)) expect(body).toContain(text);
  for (const body of await seenBy(masked)) {
    expect(body).not.toContain(text);
    expect(body).toContain("from:203.0.113.*");
  }
  const feed = await readFeed(world.database().db, { after: 0, limit: 100, zoneIds: null });
  expect(JSON.stringify(feed.map((row) => toFeedEvent(row, true)))).not.toContain(text);
});

test("acknowledging and resolving are audited with the key, and done once", async () => {
  await fire(1);
  const { url } = await world.start();
  const key = await world.key("operator", { name: "alice" });
  const [alert] = await askAll<Item>(url, "/api/v1/alerts", key, 10);
  const act = (name: string, body?: object, status = 200) =>
    ask(url, `/api/v1/alerts/${alert?.id}/${name}`, key, {
      method: "POST",
      status,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });

  expect(await act("ack", { note: "on it" })).toMatchObject({ state: "acknowledged", result: "done" });
  expect(await act("ack")).toMatchObject({ state: "acknowledged", result: "unchanged" });
  expect(await act("resolve")).toMatchObject({ result: "done", channels: ["chat", "pager"] });
  expect(await act("resolve")).toMatchObject({ state: "resolved", result: "unchanged" });
  expect(await act("ack", {}, 409)).toMatchObject({ type: "urn:longwatch:problem:alert-resolved" });
  expect(await ask(url, `/api/v1/alerts/${alert?.id}`, key)).toMatchObject({
    state: "resolved",
    acknowledgedBy: "alice",
    transitions: [
      { reason: "first" },
      { reason: "acknowledged", by: "alice", note: "on it" },
      { by: "alice" },
    ],
  });
  const audit = await world.database().db.select().from(auditEntries);
  const acts = audit.filter(({ subject }) => subject === `alert ${alert?.id}`);
  expect(acts.map(({ action, actor }) => [action, actor])).toEqual([
    ["alert.acknowledged", expect.stringMatching(/^key \w+ \(alice\)$/)],
    ["alert.resolved", expect.stringMatching(/^key \w+ \(alice\)$/)],
  ]);
});

test("an answer that has not changed is not sent again", async () => {
  await fire(1);
  const { url } = await world.start();
  const key = await world.key("reader");
  const first = await call(url, "/api/v1/alerts", key);
  const etag = first.headers.get("etag") ?? "";
  const again = await call(url, "/api/v1/alerts", key, { headers: { "if-none-match": etag } });
  await fire(1, 5);
  const later = await call(url, "/api/v1/alerts", key, { headers: { "if-none-match": etag } });

  expect(etag).toMatch(/^W\/"[\w-]{22}"$/);
  expect([again.status, await again.text()]).toEqual([304, ""]);
  expect(later.status).toBe(200);
});

test.each([
  ["limit=0", "limit", "must be a whole number from 1 to 200"],
  ["limit=201", "limit", "must be a whole number from 1 to 200"],
  ["state=burning", "state", "must be one or more of firing, acknowledged, resolved"],
  ["since=yesterday", "since", "must be an ISO 8601 time"],
  ["zone=0", "zone", "the id of a shield zone"],
  ["colour=red", "colour", "is not a known member of this request"],
  ["after=abc", "after", "must be the `next` of the previous page of this list"],
])("%s is refused by the name of its field and its rule", async (query, field, rule) => {
  const { url } = await world.start();
  const problem = await ask<{ mistakes: { field: string; rule: string }[] }>(
    url,
    `/api/v1/alerts?${query}`,
    await world.key("reader"),
    { status: 400 },
  );

  expect(problem.mistakes).toEqual([expect.objectContaining({ field })]);
  expect(problem.mistakes[0]?.rule).toContain(rule);
});

test("a cursor of one question is none of another", async () => {
  await fire(3);
  const { url } = await world.start();
  const key = await world.key("reader");
  const { next } = await ask<{ next: string }>(url, "/api/v1/alerts?limit=1", key);

  await ask(url, `/api/v1/alerts?limit=1&zone=101&after=${next}`, key, { status: 400 });
  await ask(url, `/api/v1/spikes?limit=1&after=${next}`, key, { status: 400 });
});

test("the worst alert is first, and a change of severity between pages loses no other alert", async () => {
  const alerts = world.alerts();
  for (const [ruleId, severity] of [
    ["942101", "critical"],
    ["942102", "error"],
    ["942103", "warning"],
    ["942104", "error"],
  ] as const)
    await alerts.openSpike(0, { ruleId, severity });
  await alerts.runAt(0);
  const { url } = await world.start();
  const key = await world.key("operator");
  const rules = (items: readonly Item[]) => items.map(({ ruleId }) => ruleId);
  const read = (between?: () => Promise<void>) =>
    askAll<Item>(url, "/api/v1/alerts?sort=worst", key, 2, async (page) =>
      page === 0 ? between?.() : undefined,
    );
  const all = await read();
  expect(rules(all)).toEqual(["942101", "942104", "942102", "942103"]);
  const critical = all[0]?.id;
  const during = await read(async () => {
    await ask(url, `/api/v1/alerts/${critical}/ack`, key, { method: "POST" });
  });
  expect([...new Set(rules(during))]).toEqual(rules(all));
  expect(rules(await read())).toEqual(["942104", "942102", "942103", "942101"]);
  expect(rules(await askAll<Item>(url, "/api/v1/alerts", key, 2))).toEqual([
    "942104",
    "942103",
    "942102",
    "942101",
  ]);
});

test("many alerts are acknowledged, silenced or resolved by one request, each with its audit entry", async () => {
  await fire(2);
  await fire(1, 7, 102);
  const { url } = await world.start();
  const key = await world.key("operator", { name: "bob", zoneIds: [101] });
  const all = await askAll<Item>(url, "/api/v1/alerts", await world.key("reader"), 10);
  const own = all.filter(({ zoneId }) => zoneId === 101).map(({ id }) => id);
  const foreign = all.find(({ zoneId }) => zoneId === 102)?.id;
  const act = (body: object, status = 200) =>
    ask<{ items: object[] }>(url, "/api/v1/alerts/act", key, {
      method: "POST",
      body: JSON.stringify(body),
      status,
    });

  const { items } = await act({ act: "ack", ids: [...own, foreign, own[0]], note: "on it" });
  expect(items).toMatchObject([
    ...own.map((id) => ({ id, result: "done", state: "acknowledged" })),
    { id: foreign, result: "refused", detail: `There is no alert ${foreign}, or this key may not see it.` },
  ]);
  const silenced = await act({ act: "silence", ids: own, note: "test", durationMinutes: 60 });
  const [first] = silenced.items as { silenceId: number }[];
  expect(silenced.items).toMatchObject(
    own.map((id) => ({ id, result: "done", silenceId: first?.silenceId })),
  );
  await act({ act: "silence", ids: own, scope: "rule", note: "test", durationMinutes: 60 });
  expect((await act({ act: "resolve", ids: own })).items).toMatchObject([
    { result: "done" },
    { result: "done" },
  ]);
  const again = await act({ act: "ack", ids: own });
  expect(again.items).toMatchObject([{ result: "refused" }, { result: "refused" }]);
  const trail = await world.database().db.select().from(auditEntries).orderBy(auditEntries.id);
  const acts = trail.slice(-7).map(({ action }) => action);
  expect(acts).toEqual([
    "alert.acknowledged",
    "alert.acknowledged",
    "silence.added",
    "silence.added",
    "silence.added",
    "alert.resolved",
    "alert.resolved",
  ]);
  const refused = await act({ act: "silence", ids: own }, 422);
  expect(refused).toMatchObject({ mistakes: [{ field: "note" }, { field: "durationMinutes" }] });
  await act({ act: "ack", ids: [] }, 400);
  expect(await act({ act: "ack" }, 422)).toMatchObject({
    type: "urn:longwatch:problem:no-alerts",
    mistakes: [{ field: "ids", rule: "is missing: must be given, or options that select alerts" }],
  });
});

test("many alerts are marked by one request, and an act refuses members that it does not read", async () => {
  await fire(2);
  const { url } = await world.start();
  const key = await world.key("operator");
  const ids = (await askAll<Item>(url, "/api/v1/alerts", key, 10)).map(({ id }) => id);
  const act = (body: object, status = 200) =>
    ask<{ items: object[] }>(url, "/api/v1/alerts/act", key, {
      method: "POST",
      body: JSON.stringify(body),
      status,
    });
  const marked = { result: "done", mark: "noise", before: null, spikeIds: [expect.any(Number)] };
  const { items } = await act({ act: "mark", mark: "noise", select: { zone: "101" } });
  expect(items).toMatchObject(ids.map((id) => ({ id, result: "done", state: null, marked })));
  const { pool } = world.database();
  await pool.query("update alerts set spike_id = null where id = $1", [ids[0]]);
  const both = await act({ act: "resolve", ids, mark: "attack" });
  expect(both.items).toMatchObject([
    { result: "done", state: "resolved", marked: null },
    { result: "done", state: "resolved", marked: { mark: "attack", before: "noise" } },
  ]);
  expect((await act({ act: "mark", ids: [ids[0]], mark: "attack" })).items).toMatchObject([
    {
      result: "refused",
      detail: `Alert ${ids[0]} has no spike that is kept. Only alerts about a rule can be marked.`,
    },
  ]);
  expect(await act({ act: "mark", ids }, 422)).toMatchObject({ mistakes: [{ field: "mark" }] });
  for (const name of ["ack", "mark"])
    expect(
      await act({ act: name, ids: [ids[0]], attacker: "203.0.113.7", mark: "attack" }, 422),
    ).toMatchObject({
      mistakes: [{ field: "attacker" }],
    });
});

test("an alert is marked while a silence mutes it, and offers its address first, but not to a masked key", async () => {
  await fire(1);
  const { url } = await world.start({ clock: () => NOW + 60_000 });
  const operator = await world.key("operator", { name: "bob" });
  const masked = await world.key("operator", { isMasked: true });
  const [alert] = await askAll<Item & { silence: unknown }>(url, "/api/v1/alerts", operator, 10);
  expect(alert?.silence).toBeNull();
  const body = JSON.stringify({ act: "silence", ids: [alert?.id], note: "pentest", durationMinutes: 60 });
  await ask(url, "/api/v1/alerts/act", operator, { method: "POST", body });
  const silence = { createdBy: "bob", reason: "pentest", expiresAt: "2026-11-20T16:31:00.000Z" };
  const show = (key: string) => ask(url, `/api/v1/alerts/${alert?.id}`, key);
  expect(await show(operator)).toMatchObject({
    silence,
    silenced: [{ ...silence, to: null }],
    silenceChoices: [
      { scope: "source", matchers: { zone: [101], ip: ["203.0.113.7"] } },
      { scope: "source", matchers: { zone: [101], asn: ["AS64500"] } },
      { scope: "rule", matchers: { zone: [101], rule: ["942110"] } },
      { scope: "zone", matchers: { zone: [101] } },
    ],
  });
  expect(await askAll(url, "/api/v1/alerts", masked, 10)).toMatchObject([{ silence }]);
  const seen = await show(masked);
  expect(JSON.stringify(seen)).not.toContain("203.0.113.7");
  expect(seen).toMatchObject({ howToSilence: expect.stringContaining("--asn=AS64500 ") });
});
