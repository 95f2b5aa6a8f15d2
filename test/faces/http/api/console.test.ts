import { and, eq } from "drizzle-orm";
import { beforeAll, expect, test } from "vitest";
import { defaultAlerting } from "#config/file/config-file.ts";
import { writeHorizon } from "#db/proof/horizons.ts";
import { advice, alerts, silences } from "#db/schema/alerts.ts";
import { coverageWindows, differingCells } from "#db/schema/coverage.ts";
import { channelStates } from "#db/schema/notifications.ts";
import { pseudonymKeys } from "#db/schema/privacy.ts";
import { ruleBuckets, ruleMetrics } from "#db/schema/rules.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { insertSpike } from "#test/alerts/insert-spike.ts";
import { SERVICE } from "../default-service.ts";
import { call } from "../start-archive.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const MINUTE = 60_000;
const HOUR = 3_600_000;
const NOW = Math.floor(Date.now() / HOUR) * HOUR + 30 * MINUTE;
const BEGIN = NOW - 10 * MINUTE;
const ids = { alert: 0, earlier: 0, foreign: 0, spike: 0 };
const ZONE = 101;
const RULE = "942100";

/** Nine days of five events an hour, and an attack of the last ten minutes: 100 a minute. */
beforeAll(async () => {
  const { db } = world.database();
  const buckets: (typeof ruleBuckets.$inferInsert)[] = [];
  const add = (zoneId: number, ruleId: string, at: number, total: number) => {
    for (const width of [60, 3_600, 86_400]) {
      const startsAt = at - (at % (width * 1_000));
      const known = buckets.find(
        (one) =>
          one.zoneId === zoneId &&
          one.ruleId === ruleId &&
          one.width === width &&
          one.startsAt.getTime() === startsAt,
      );
      if (known === undefined)
        buckets.push({ zoneId, ruleId, width, startsAt: new Date(startsAt), total, blocked: total });
      else Object.assign(known, { total: (known.total ?? 0) + total, blocked: (known.blocked ?? 0) + total });
    }
  };
  for (let at = NOW - 9 * 24 * HOUR; at < BEGIN; at += 12 * MINUTE) add(ZONE, RULE, at, 1);
  for (let at = BEGIN; at < NOW; at += MINUTE) {
    add(ZONE, RULE, at, 100);
    add(ZONE, "930100", at, 20);
    add(102, "canary-rule", at, 30);
  }
  await db.insert(ruleBuckets).values(buckets);
  for (const zoneId of [ZONE, 102])
    await db.insert(coverageWindows).values(
      Array.from({ length: 9 * 24 + 1 }, (_, hour) => {
        const startsAt = new Date(NOW - 30 * MINUTE - hour * HOUR);
        const searchedThrough = new Date(startsAt.getTime() + HOUR);
        const row = { zoneId, startsAt, searchedThrough, storedCount: 5 };
        if (hour === 0) return row;
        if (zoneId === ZONE && hour === 100) return { ...row, state: "gap" as const, gapReason: "lost" };
        return { ...row, state: "sealed" as const, sealedAt: searchedThrough, evidence: {} };
      }),
    );
  ids.spike = await insertSpike(db, { zoneId: ZONE, ruleId: RULE, openedAt: new Date(BEGIN + 3 * MINUTE) });
  const insert = async (values: object) => {
    const transitions = [{ transition: 1, at: BEGIN, reason: "first", state: "firing" }];
    const row = { kind: "spike", transitions, details: {}, firedAt: new Date(BEGIN), ...values };
    const [alert] = await db
      .insert(alerts)
      .values(row as typeof alerts.$inferInsert)
      .returning({ id: alerts.id });
    return alert?.id ?? 0;
  };
  const past = new Date(NOW - 48 * HOUR);
  const resolved = { state: "resolved" as const, firedAt: past, resolvedAt: new Date(past.getTime() + HOUR) };
  ids.earlier = await insert({ ...resolved, zoneId: ZONE, ruleId: RULE, fingerprint: "earlier" });
  ids.alert = await insert({ zoneId: ZONE, ruleId: RULE, fingerprint: "now", spikeId: ids.spike });
  ids.foreign = await insert({ zoneId: 102, ruleId: "canary-rule", fingerprint: "foreign" });
  await db.insert(silences).values([
    {
      startsAt: past,
      expiresAt: new Date(past.getTime() + HOUR),
      createdBy: "ann",
      reason: "over",
      matchers: { rule: ["942*"] },
    },
    {
      startsAt: past,
      expiresAt: new Date(NOW + HOUR),
      createdBy: "bob",
      reason: "other",
      matchers: { zone: [102] },
    },
  ]);
  await db.insert(advice).values({
    zoneId: ZONE,
    ruleId: RULE,
    askedAt: new Date(BEGIN),
    success: true,
    text: "Block 198.51.100.7.",
  });
  await db.insert(ruleMetrics).values({
    zoneId: ZONE,
    ruleId: RULE,
    day: new Date(NOW - 24 * HOUR).toISOString().slice(0, 10),
    total: 121,
  });
  await db.insert(channelStates).values({ channel: "gone" });
});

const sent: string[] = [];
const chat = {
  name: "chat",
  kind: "webhook",
  capabilities: { laterTransitions: "post-anew", rate: { perMinute: 30, digest: null } },
  send: async ({ headline }: { headline: string }) => {
    sent.push(headline);
    return { providerReference: null };
  },
} as unknown as Notifier;
const alerting = () => ({
  ...defaultAlerting({ channels: [{ kind: "terminal", name: "chat" }], publicUrl: null, spikeZ: 3.5 }),
});
const service = { ...SERVICE, alerting, notifiers: new Map([["chat", chat]]) };
const start = () => world.start({ service, clock: () => NOW });
const post = (body?: object, status = 200) => ({
  method: "POST",
  status,
  ...(body === undefined ? {} : { body: JSON.stringify(body) }),
});

test("a rule's series has the counts, what is usual, and the threshold that the attack exceeds", async () => {
  const { url } = await start();
  const key = await world.key("reader", { zoneIds: [ZONE] });
  interface Series {
    readonly settings: object;
    readonly points: {
      startsAtMs: number;
      count: number;
      usual: number;
      threshold: number | null;
      isSpiking: boolean;
    }[];
    readonly spikes: { id: number; alertId: number }[];
  }
  const get = (width: string, more = "") =>
    ask<Series>(url, `/api/v1/rules/series?zone=${ZONE}&rule=${RULE}&width=${width}${more}`, key);
  const hours = await get("hour");
  expect(hours.points.length).toBe(169);
  expect(hours.settings).toEqual({ z: 3.5, floor: 10 });
  const [attacked, before] = [hours.points.at(-1), hours.points.at(-2)];
  expect(before).toMatchObject({ count: 5, isSpiking: false });
  expect(before?.usual).toBeCloseTo(5, 0);
  expect(attacked?.isSpiking).toBe(true);
  expect(attacked?.count).toBeGreaterThan(attacked?.threshold ?? Number.POSITIVE_INFINITY);
  expect(hours.spikes).toMatchObject([{ id: ids.spike, alertId: ids.alert }]);
  const minutes = await get("minute");
  expect(minutes.points.filter(({ isSpiking }) => isSpiking)[0]?.startsAtMs).toBe(BEGIN);
  const days = await get("day");
  expect(days.points.at(-2)).toMatchObject({ count: 120, threshold: null });
  expect(days.points.at(-2)?.usual).toBeCloseTo(120, -1);
  await ask(
    url,
    `/api/v1/rules/series?zone=${ZONE}&rule=${RULE}&width=minute&from=${NOW - 30 * 24 * HOUR}`,
    key,
    { status: 422 },
  );
  await ask(url, `/api/v1/rules/series?zone=${ZONE}&rule=${RULE}&width=week`, key, { status: 400 });
  await ask(url, `/api/v1/rules/series?zone=102&rule=${RULE}`, key, { status: 403 });
});

test("the replay returns the alerts that other settings would have raised, and the lines for these settings", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const get = (more: string, status = 200) =>
    ask<{ before: { alerts: object[] }; after: { alerts: object[] }; yaml: string }>(
      url,
      `/api/v1/rules/replay?zone=${ZONE}&rule=${RULE}${more}`,
      key,
      { status },
    );
  const insensitive = await get("&z=10&floor=5000&days=8");
  expect([insensitive.before.alerts.length, insensitive.after.alerts.length]).toEqual([1, 0]);
  // The detector opens a spike, and fires its alert, at the end of the first minute that reaches the threshold.
  const from = new Date(BEGIN + MINUTE).toISOString();
  expect(insensitive.before.alerts[0]).toMatchObject({ from, isOpen: true, severity: "critical" });
  expect(insensitive.yaml).toBe(
    'detection:\n  overrides:\n    - zone: [101]\n      rule: ["942100"]\n      z: 10 # score of a spike\n      floor: 5000 # fewest events of a spike\n',
  );
  const same = await get("");
  expect(same.after).toEqual(same.before);
  await get("&z=0", 400);
  await get("&days=61", 400);
});

test("a rule's facts are the recommendations and the platform's counts, masked for masked keys", async () => {
  const { url } = await start();
  const path = `/api/v1/rules/facts?zone=${ZONE}&rule=${RULE}`;
  const facts = await ask<{ advice: { text: string }[]; days: { day: string }[] }>(
    url,
    path,
    await world.key("reader"),
  );
  expect(facts.advice.map(({ text }) => text)).toEqual(["Block 198.51.100.7."]);
  expect(facts.days.at(-2)).toMatchObject({ platform: 121, stored: 120 });
  const masked = await ask(url, path, await world.key("reader", { isMasked: true }));
  expect(JSON.stringify(masked)).not.toContain("198.51.100.7");
});

test("an alert's context has what rose with it, earlier episodes and matching silences, of the key's zones only", async () => {
  const { url } = await start();
  interface Context {
    readonly risen: { ruleId: string }[];
    readonly episodes: { alertId: number }[];
    readonly silences: { reason: string; state: string }[];
    readonly during: { total: number; from: string; to: string };
    readonly before: { total: number };
  }
  const get = async (id: number, zoneIds?: number[], status = 200) =>
    ask<Context>(url, `/api/v1/alerts/${id}/context`, await world.key("reader", zoneIds && { zoneIds }), {
      status,
    });
  const all = await get(ids.alert);
  expect(all.risen.map(({ ruleId }) => ruleId)).toEqual(["canary-rule", "930100"]);
  expect(all.episodes.map(({ alertId }) => alertId)).toEqual([ids.earlier]);
  expect(all.silences).toMatchObject([{ reason: "over", state: "expired" }]);
  expect([all.during.total, all.before.total]).toEqual([1_000, 5]);
  const own = await get(ids.alert, [ZONE]);
  // The counts by minute of the same span add up to the same total.
  const { from, to } = all.during;
  const series = await ask<{ points: { count: number }[] }>(
    url,
    `/api/v1/rules/series?zone=${ZONE}&rule=${RULE}&width=minute&from=${from}&to=${to}`,
    await world.key("reader"),
  );
  expect(series.points.reduce((sum, { count }) => sum + count, 0)).toBe(all.during.total);
  expect(own.risen.map(({ ruleId }) => ruleId)).toEqual(["930100"]);
  await get(ids.foreign, [ZONE], 404);
});

test("the preview of a silence counts what it would mute now and in the last week", async () => {
  const { url } = await start();
  const key = await world.key("reader", { zoneIds: [ZONE] });
  const preview = (matchers: object, status = 200) =>
    ask<{ now: { count: number }; lastWeek: { count: number; items: { id: number }[] } }>(
      url,
      "/api/v1/silences/preview",
      key,
      post({ matchers }, status),
    );
  const found = await preview({ rule: ["942*"] });
  expect([found.now.count, found.lastWeek.count]).toEqual([1, 2]);
  expect(found.lastWeek.items.map(({ id }) => id)).toEqual([ids.alert, ids.earlier]);
  expect((await preview({ zone: [102] })).lastWeek.count).toBe(0);
  await preview({}, 400);
});

test("the overview has the zones' events and hours, the rule that changed most, and what needs attention", async () => {
  const { url } = await start();
  interface Answer {
    readonly stepSeconds: number;
    readonly zones: { id: number; points: { blocked: number }[]; hours: { state: string }[] }[];
    readonly rules: { ruleId: string; sparkline: number[]; total: number; advice: { text: string } | null }[];
    readonly alerts: { id: number }[];
    readonly attention: { kind: string; zoneId: number | null }[];
  }
  const get = async (query: string, more?: Parameters<typeof world.key>[1]) =>
    ask<Answer>(url, `/api/v1/overview${query}`, await world.key("reader", more));
  const all = await get("");
  expect(all.stepSeconds).toBe(480);
  const [first] = all.zones;
  expect(first?.points.reduce((sum, { blocked }) => sum + blocked, 0)).toBe(1_320);
  expect(first?.hours.length).toBeGreaterThanOrEqual(72);
  expect(all.rules.map(({ ruleId }) => ruleId)).toEqual([RULE, "canary-rule", "930100"]);
  expect(all.rules[0]?.sparkline.reduce((sum, count) => sum + count, 0)).toBe(all.rules[0]?.total);
  expect(all.rules[0]?.advice?.text).toContain("198.51.100.7");
  expect(all.alerts.map(({ id }) => id)).toEqual([ids.foreign, ids.alert]);
  expect(all.attention.map(({ kind }) => kind)).toContain("not-running");
  const own = await get("", { zoneIds: [ZONE], isMasked: true });
  expect(JSON.stringify(own)).not.toMatch(/canary|198\.51\.100\.7/);
  expect(own.attention.map(({ kind }) => kind)).not.toContain("not-running");
  expect((await get("?zone=102")).zones.map(({ id }) => id)).toEqual([102]);
  await ask(url, "/api/v1/overview?from=yesterday", await world.key("reader"), { status: 400 });
});

test("the overview says that a process lacks the pseudonym key, to keys of every zone only", async () => {
  const { url } = await start();
  const { db } = world.database();
  const because = "the key of this process is another one";
  await db.insert(pseudonymKeys).values({ keyId: "one", missingAt: new Date(), missingBecause: because });
  const get = async (zoneIds?: number[]) =>
    JSON.stringify(await ask(url, "/api/v1/overview", await world.key("reader", zoneIds && { zoneIds })));
  expect(await get()).toContain(because);
  expect(await get([ZONE])).not.toContain(because);
  await db.delete(pseudonymKeys);
});

test("a mark is stored once with its audit entry, is shown, and only operators of the zone may give one", async () => {
  const { url } = await start();
  const mark = (key: string, id: number, body: object, status = 200) =>
    ask(url, `/api/v1/alerts/${id}/mark`, key, post(body, status));
  const operator = await world.key("operator", { zoneIds: [ZONE] });
  expect(await mark(operator, ids.alert, { mark: "noise", note: "load test" })).toMatchObject({
    before: null,
  });
  expect(await mark(operator, ids.alert, { mark: "attack" })).toMatchObject({
    mark: "attack",
    before: "noise",
  });
  await mark(operator, ids.alert, { mark: "attack" });
  const context = await ask<{ mark: string }>(url, `/api/v1/alerts/${ids.alert}/context`, operator);
  expect(context.mark).toBe("attack");
  const { rows } = await world
    .database()
    .pool.query("select details from audit_entries where action = 'alert.marked' order by id");
  expect(rows.map(({ details }) => (details as { mark: string }).mark)).toEqual(["noise", "attack"]);
  await mark(operator, ids.foreign, { mark: "attack" }, 404);
  await mark(operator, ids.alert, { mark: "storm" }, 400);
  await mark(await world.key("reader"), ids.alert, { mark: "noise" }, 403);
  await mark(await world.key("operator"), ids.foreign, { mark: "noise" }, 409);
  await world.database().pool.query("update spikes set mark = null, marked_at = null");
});

test("the counts of an hour show the rules that differ first, with the platform's count", async () => {
  const { url } = await start();
  const { db } = world.database();
  const startsAt = new Date(NOW - 90 * MINUTE);
  const hour = { zoneId: ZONE, startsAt };
  await db
    .update(coverageWindows)
    .set({ reconciledAt: new Date(NOW) })
    .where(and(eq(coverageWindows.zoneId, ZONE), eq(coverageWindows.startsAt, startsAt)));
  const seen = { firstSeenAt: startsAt, lastSeenAt: startsAt, nextRepairAt: startsAt };
  await db
    .insert(differingCells)
    .values({ ...hour, ...seen, ruleId: "lost", upstreamCount: 7, storedCount: 0, repairs: 2 });
  const found = await ask<{ items: object[]; comparedAt: string }>(
    url,
    `/api/v1/coverage/rules?zone=${ZONE}&hour=${NOW - 60 * MINUTE}`,
    await world.key("reader", { zoneIds: [ZONE] }),
  );
  expect(found.items).toEqual([
    { ruleId: "lost", title: null, stored: 0, platform: 7, repairs: 2 },
    { ruleId: RULE, title: "SQL injection", stored: 5, platform: 5, repairs: 0 },
  ]);
  const other = await world.key("reader", { zoneIds: [102] });
  await ask(url, `/api/v1/coverage/rules?zone=${ZONE}&hour=${NOW}`, other, { status: 403 });
});

test("coverage and zones follow a platform that keeps the zone's events for 48 hours", async () => {
  const { url } = await start();
  const key = await world.key("reader", { zoneIds: [ZONE] });
  const { db } = world.database();
  const hour = { zoneId: ZONE, startsAt: new Date(NOW - 30 * MINUTE - 40 * HOUR) };
  const isHour = and(eq(coverageWindows.zoneId, ZONE), eq(coverageWindows.startsAt, hour.startsAt));
  const reopen = (state: "open" | "sealed") => db.update(coverageWindows).set({ state }).where(isHour);
  const readAll = async () => [
    (await ask<{ horizons: object[] }>(url, `/api/v1/coverage?from=${NOW - HOUR}`, key)).horizons,
    (await ask<{ items: { hoursToLoss: number }[] }>(url, "/api/v1/zones", key)).items[0]?.hoursToLoss,
  ];
  await reopen("open");
  expect(await readAll()).toEqual([[], expect.closeTo(31.5, 1)]);
  const since = NOW - HOUR;
  await writeHorizon(db, ZONE, { keptMs: 48 * HOUR, since, beforeMs: 72 * HOUR }, since);
  const horizon = { zoneId: ZONE, keptHours: 48, since: new Date(since).toISOString() };
  expect(await readAll()).toEqual([[horizon], expect.closeTo(7.5, 1)]);
  await writeHorizon(db, ZONE, { keptMs: null, since: null, beforeMs: null }, since);
  await reopen("sealed");
});

test("coverage by day counts the hours of each state", async () => {
  const { url } = await start();
  const { items } = await ask<{ items: Record<string, number>[] }>(
    url,
    `/api/v1/coverage/days?from=${NOW - 6 * 24 * HOUR}`,
    await world.key("reader", { zoneIds: [ZONE] }),
  );
  const sum = (name: string) => items.reduce((total, day) => total + (day[name] ?? 0), 0);
  expect([...new Set(items.map(({ zoneId }) => zoneId))]).toEqual([ZONE]);
  expect([sum("gap"), sum("open")]).toEqual([1, 1]);
  expect(sum("stored")).toBe(5 * (sum("sealed") + sum("gap") + sum("open")));
});

test("channels are listed, tested and replayed by those who may act for every zone", async () => {
  const { url } = await start();
  const key = await world.key("operator");
  const { items } = await ask<{ items: object[] }>(url, "/api/v1/channels", key);
  expect(items).toMatchObject([
    { name: "chat", isConfigured: true, circuit: "closed", perMinute: 30 },
    { name: "gone", isConfigured: false, kind: null },
  ]);
  expect(await ask(url, "/api/v1/channels/chat/test", key, post())).toMatchObject({ isDelivered: true });
  expect(sent.length).toBe(1);
  expect(await ask(url, "/api/v1/channels/chat/replay", key, post())).toMatchObject({ replayed: 0 });
  await ask(url, "/api/v1/channels/none/test", key, post(undefined, 404));
  for (const [one, status] of [
    [await world.key("reader"), 403],
    [await world.key("operator", { zoneIds: [ZONE] }), 403],
  ] as const)
    await ask(url, "/api/v1/channels/chat/test", one, post(undefined, status));
  expect(sent.length).toBe(1);
});

test("the routing test says who would be notified, with the silences of the moment", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const explain = (zone: number) =>
    ask<{ silencedBy: number | null; transitions: { notified: string[] }[] }>(
      url,
      `/api/v1/routing/test?zone=${zone}&rule=${RULE}&severity=error`,
      key,
    );
  expect((await explain(ZONE)).transitions[0]?.notified).toEqual(["chat"]);
  expect((await explain(102)).silencedBy).toEqual(expect.any(Number));
  await ask(url, `/api/v1/routing/test?zone=${ZONE}&rule=${RULE}&severity=error&kind=sources`, key);
  await ask(url, `/api/v1/routing/test?zone=${ZONE}&rule=${RULE}&severity=loud`, key, { status: 400 });
  await ask(
    url,
    `/api/v1/routing/test?zone=${ZONE}&rule=${RULE}&severity=error`,
    await world.key("reader", { zoneIds: [ZONE] }),
    { status: 403 },
  );
});

test("jobs, audit, privacy and settings are shown, secrets are not, and only an admin reads the last three", async () => {
  const { url } = await start();
  const [admin, operator] = [await world.key("admin"), await world.key("operator")];
  expect(await ask(url, "/api/v1/jobs", operator)).toMatchObject({
    items: expect.arrayContaining([
      expect.objectContaining({
        job: "poll-events",
        runs: { done: 2, retry: 1 },
        lastSuccessAt: "1970-01-01T00:00:00.001Z",
        tick: { expression: null, lastRun: null, nextAt: null, off: "no process runs it" },
      }),
    ]),
  });
  const audit = await ask<{ items: { action: string }[] }>(url, "/api/v1/audit?action=key.&limit=500", admin);
  expect(audit.items.length).toBeGreaterThan(1);
  expect([...new Set(audit.items.map(({ action }) => action))]).toEqual(["key.created"]);
  await ask(url, "/api/v1/audit?action=%27", admin, { status: 400 });
  await ask(url, `/api/v1/audit?since=${NOW}&until=${BEGIN}`, admin, { status: 422 });
  expect(await ask(url, "/api/v1/privacy", admin)).toMatchObject({
    retention: { eventDays: 400 },
    erasures: [],
  });
  expect(await ask(url, "/api/v1/settings", admin)).toMatchObject({
    variables: [{ name: "EDGE_API_KEY", value: "[secret]" }],
    channels: [{ name: "chat", kind: "terminal" }],
  });
  for (const path of ["audit", "privacy", "settings"]) {
    const { status } = await call(url, `/api/v1/${path}`, operator);
    expect([path, status]).toEqual([path, 403]);
  }
});

test("a saved view is its key's own until it is shared, and only its key or an admin takes it away", async () => {
  const { url } = await start();
  const [mine, theirs, admin] = await Promise.all(
    (["operator", "reader", "admin"] as const).map((role) => world.key(role)),
  );
  const view = { name: "my search", page: "explorer", state: "ip=198.51.100.7" };
  const list = async (key: string | undefined) =>
    (await ask<{ items: { id: number; isOwn: boolean; name: string }[] }>(url, "/api/v1/views", key)).items;
  const { id } = await ask<{ id: number }>(url, "/api/v1/views", mine, post(view, 201));
  expect((await list(mine)).map((one) => [one.id, one.isOwn])).toEqual([[id, true]]);
  expect(await list(theirs)).toEqual([]);
  const put = (key: string | undefined, body: object, status: number) =>
    ask(url, `/api/v1/views/${id}`, key, { ...post(body, status), method: "PUT" });
  await put(theirs, view, 404);
  await put(mine, { ...view, name: "renamed", isShared: true }, 200);
  expect(await list(theirs)).toMatchObject([{ id, isOwn: false, name: "renamed" }]);
  const masked = await ask(url, "/api/v1/views", await world.key("reader", { isMasked: true }));
  expect(JSON.stringify(masked)).not.toContain("198.51.100.7");
  await ask(url, "/api/v1/views", theirs, post({ ...view, isShared: true }, 403));
  await ask(url, "/api/v1/views", theirs, post({ ...view, page: "nowhere" }, 400));
  const remove = async (key: string | undefined) =>
    (await call(url, `/api/v1/views/${id}`, key, { method: "DELETE" })).status;
  expect([await remove(theirs), await remove(admin), await remove(mine)]).toEqual([404, 204, 404]);
});
