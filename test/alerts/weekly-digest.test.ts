import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { buildWeeklyMessage, describeWeek, lastWeek } from "#alerts/rules/message/weekly-message.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { alerts, exclusions, silences } from "#db/schema/alerts.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { notifications } from "#db/schema/notifications.ts";
import { apiKeys } from "#db/schema/people.ts";
import { reviewPlans, ruleBuckets } from "#db/schema/rules.ts";
import { spikes } from "#db/schema/spikes.ts";
import { createRandom } from "#emulator/traffic/random.ts";
import { readWeek, showDigest } from "#health/digest.ts";
import { createSendDigestJob, type SendDigestDeps } from "#jobs/alerts/send-digest.ts";
import { createSecret } from "#lib/secret.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { alertMessage } from "#model/alert-message.ts";
import { MARKS, type Mark } from "#model/kinds.ts";
import { type Caller, localCaller } from "#operations/caller.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { FORMS } from "../delivery/support/forms.ts";
import { HOSTILE } from "../delivery/support/hostile.ts";
import { SERVICE } from "../faces/http/default-service.ts";
import { performOn } from "../operations/perform-on.ts";
import { insertSpike } from "./insert-spike.ts";

const FROM = Date.parse("2026-11-16");
const TO = Date.parse("2026-11-23");
const NOW = TO + 8 * HOUR_MS;
const WEEK = { fromMs: FROM, toMs: TO };
const EVERYONE = localCaller("test");

let database: MigratedDatabase;
beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  for (const table of [
    alerts,
    exclusions,
    reviewPlans,
    spikes,
    silences,
    ruleBuckets,
    coverageWindows,
    apiKeys,
  ])
    await database.db.delete(table);
});

const read = (caller: Caller = EVERYONE, service: Partial<typeof SERVICE> = {}) =>
  readWeek({ db: database.db, now: NOW, caller, service: { ...SERVICE, ...service } }, WEEK);
const hour = (zoneId: number, startsAt: number, state: "sealed" | "open" | "gap", storedCount = 0) => ({
  zoneId,
  startsAt: new Date(startsAt),
  state,
  storedCount,
  ...(state === "sealed"
    ? {
        sealedAt: new Date(NOW),
        evidence: {},
      }
    : {}),
  ...(state === "gap" ? { gapReason: "the service was down" } : {}),
});

/** Sealed hours of a zone in [from, to). */
const watch = (zoneId: number, from: number, to = TO) =>
  database.db
    .insert(coverageWindows)
    .values(
      Array.from({ length: (to - from) / HOUR_MS }, (_, n) => hour(zoneId, from + n * HOUR_MS, "sealed")),
    );
const count = (zoneId: number, ruleId: string, day: number, total: number) =>
  database.db
    .insert(ruleBuckets)
    .values({ zoneId, ruleId, startsAt: new Date(FROM + day * DAY_MS), width: 86_400, total, logged: total });

interface Fired {
  readonly at: number;
  readonly zoneId?: number;
  readonly ruleId?: string;
  readonly mark?: Mark | null;
  readonly ackMs?: number | null;
  readonly channels?: readonly string[];
  readonly mutedBy?: string | null;
}

async function fire(given: Fired): Promise<void> {
  const {
    at,
    zoneId = 101,
    ruleId = "942100",
    mark = null,
    ackMs = null,
    channels = [],
    mutedBy = null,
  } = given;
  const [openedAt, closedAt] = [new Date(at), new Date(at + MINUTE_MS)];
  const marked = mark === null ? {} : { mark, markedAt: new Date(NOW) };
  const spikeId = await insertSpike(database.db, { openedAt, closedAt, zoneId, ruleId, ...marked });
  const entry = { transition: 1, at, reason: "first", state: "firing", channels, mutedBy };
  const acknowledgedAt = ackMs === null ? null : new Date(at + ackMs);
  await database.db.insert(alerts).values({
    spikeId,
    zoneId,
    ruleId,
    kind: "spike",
    firedAt: openedAt,
    acknowledgedAt,
    transitions: [entry],
    fingerprint: `${spikeId}`,
    state: "resolved",
    resolvedAt: new Date(at + DAY_MS),
  });
}

const median = (sorted: readonly number[]) => {
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[half] : ((sorted[half - 1] ?? 0) + (sorted[half] ?? 0)) / 2;
};

test("a week before the first start says that no hour was watched", async () => {
  const [hours] = describeWeek(await read(), {});
  expect(hours).toMatchObject({ label: "Hours", lines: [{ text: "no hour was watched" }] });
});

test("the figures of drawn weeks agree with a naive count of what was stored", async () => {
  const random = createRandom();
  random.reseed(3, 6, 5, 6);
  const draw = (below: number) => Math.floor(random.fraction() * below);
  const hours = [101, 102].flatMap((zoneId) =>
    Array.from({ length: 2 * 7 * 24 }, (_, n) => {
      const state = random.pick(["sealed", "sealed", "sealed", "open", "gap"] as const);
      return hour(zoneId, FROM - 7 * DAY_MS + n * HOUR_MS, state, draw(1_000));
    }),
  );
  await database.db.insert(coverageWindows).values(hours);
  const buckets = [101, 102].flatMap((zoneId) =>
    ["911100", "920100", "930100", "941100", "942100", "944100", ""].flatMap((ruleId) =>
      Array.from({ length: 16 }, (_, n) => ({ zoneId, ruleId, day: n - 8, total: draw(500) })),
    ),
  );
  for (const { zoneId, ruleId, day, total } of buckets) await count(zoneId, ruleId, day, total);
  const fired = Array.from({ length: 60 }, () => ({
    at: FROM - DAY_MS + draw(9 * 24) * HOUR_MS,
    zoneId: random.pick([101, 102]),
    mark: random.pick([null, null, ...MARKS]),
    ackMs: random.pick([null, 1_000 * draw(7_200)]),
    channels: random.pick([[], ["chat"]]),
  }));
  for (const one of fired) await fire(one);

  const within = hours.filter(({ startsAt }) => startsAt.getTime() >= FROM);
  const ofState = (state: string) => within.filter((one) => one.state === state).length;
  const stored = (of: typeof hours) => of.reduce((sum, one) => sum + one.storedCount, 0);
  const seen = fired.filter(({ at }) => at >= FROM && at < TO);
  const acks = seen.flatMap(({ ackMs }) => ackMs ?? []).sort((a, b) => a - b);
  const sums = new Map<string, { total: number; before: number }>();
  for (const { zoneId, ruleId, day, total } of buckets) {
    const sum = sums.get(`${zoneId} ${ruleId}`) ?? { total: 0, before: 0 };
    if (day >= 0 && day < 7) sum.total += total;
    if (day >= -7 && day < 0) sum.before += total;
    sums.set(`${zoneId} ${ruleId}`, sum);
  }
  const changes = [...sums.values()]
    .map(({ total, before }) => Math.abs(total - before))
    .sort((a, b) => b - a);

  const figures = await read();
  expect(figures.hours).toEqual({
    passed: within.length,
    sealed: ofState("sealed"),
    open: ofState("open"),
    gap: ofState("gap"),
    unwatched: 0,
  });
  expect(figures.events).toEqual({ total: stored(within), before: stored(hours) - stored(within) });
  expect(figures.changedRules.map(({ total, before }) => Math.abs(total - before))).toEqual(
    changes.slice(0, 5),
  );
  for (const { zoneId, ruleId, total, before } of figures.changedRules)
    expect({ total, before }).toEqual(sums.get(`${zoneId} ${ruleId}`));
  expect(figures.alerts).toEqual({
    fired: seen.length,
    notified: seen.filter(({ channels }) => channels.length > 0).length,
    acknowledged: acks.length,
    medianMs: median(acks),
    worstMs: acks.at(-1),
  });
  const marks = Object.fromEntries(figures.marks.map((one) => [one.mark, one.alerts]));
  for (const mark of MARKS)
    expect([mark, marks[mark] ?? 0]).toEqual([mark, seen.filter((one) => one.mark === mark).length]);
});

test("a key of one zone sees the figures of its zone, and nothing of the service as a whole", async () => {
  await watch(101, FROM - 7 * DAY_MS);
  await watch(102, FROM - 7 * DAY_MS);
  await count(101, "942100", 1, 10);
  await count(102, "920100", 1, 1_000);
  await fire({ at: FROM });
  await fire({ at: FROM, zoneId: 102 });
  const expiresAt = new Date(NOW + DAY_MS);
  await database.db.insert(silences).values({
    startsAt: new Date(FROM),
    expiresAt,
    createdBy: "eve",
    reason: "test",
    matchers: { zone: [102] },
  });
  const figures = await read({ ...EVERYONE, zoneIds: [101] });
  expect(figures.hours.passed).toBe(7 * 24);
  expect(figures.changedRules).toEqual([{ zoneId: 101, ruleId: "942100", total: 10, before: 0 }]);
  expect(figures.alerts.fired).toBe(1);
  expect(figures.storage).toBeNull();
  expect(figures.hands).toEqual([]);
  expect((await read()).hands.map(({ text }) => text)).toContainEqual(
    expect.stringMatching(/^Silence \d+ ends/),
  );
});

test("a quiet week says so in a few lines", async () => {
  await watch(101, FROM - 7 * DAY_MS);
  const rows = describeWeek({ ...(await read()), hands: [] }, { 101: { name: "shop", labels: {} } });
  expect(rows.map(({ label, lines }) => `${label}: ${lines.map(({ text }) => text).join("; ")}`)).toEqual([
    "Hours: 168 of 168 hours sealed",
    "Events: 0 (0 the week before)",
    "Alerts: 0 alerts, 0 notified, 0 acknowledged",
    "Storage: 0 days of events kept",
    "Next week: nothing needs a hand",
  ]);
});

test("zones are compared from the first week on, with the hours that are known of the week before", async () => {
  const store = (zoneId: number, from: number, hours: number, storedCount: number) =>
    database.db.insert(coverageWindows).values(
      Array.from({ length: hours }, (_, n) => ({
        ...hour(zoneId, from + n * HOUR_MS, "sealed"),
        storedCount,
      })),
    );
  await store(101, FROM, 168, 1);
  await store(102, FROM - 84 * HOUR_MS, 84, 10);
  await store(102, FROM, 168, 10);
  await store(103, FROM - 168 * HOUR_MS, 168, 1);
  await store(103, FROM, 168, 3);
  const rows = describeWeek(await read(), {});
  expect(rows.find(({ label }) => label === "Zones")?.lines.map(({ text }) => text)).toEqual([
    "zone 103: 504 events after 168",
    "zone 101: 168 events, nothing is known of the week before",
    "zone 102: 1,680 events after 840 in the 84 known hours of the week before",
  ]);
});

test("the first week counts from the first hour, and compares with no week before", async () => {
  await watch(101, TO - 30 * HOUR_MS);
  await count(101, "942100", 6, 10);
  const figures = await read();
  expect(figures.hours).toMatchObject({ passed: 30, sealed: 30, open: 0 });
  expect(figures.events.before).toBeNull();
  expect(figures.changedRules).toEqual([]);
});

test("an installation without a zone has a digest", async () => {
  expect((await read()).hours).toEqual({ passed: 0, sealed: 0, open: 0, gap: 0, unwatched: 0 });
});

test("rules that few addresses lift are listed if they notified nobody", async () => {
  await fire({ at: FROM, ruleId: "920100", mutedBy: "few-addresses" });
  await fire({ at: FROM + HOUR_MS, ruleId: "920100", mutedBy: "few-addresses" });
  await fire({ at: FROM, ruleId: "930100", mutedBy: "few-addresses", channels: ["chat"] });
  await fire({ at: FROM, ruleId: "941100", mutedBy: "incident" });
  expect((await read()).fewAddresses).toEqual([{ zoneId: 101, ruleId: "920100", alerts: 2 }]);
});

test("rules that no longer do as a followed plan says are one line, and those of a plan that nobody follows none", async () => {
  const days = { from: "2026-11-01", to: "2026-11-07", days: 7 };
  const plan = {
    block: ["942100", "941100"],
    log: [],
    exclusions: [],
    promised: [],
    learned: days,
    judged: days,
  };
  const rules = ["942100", "941100"].map((rule) => ({ rule, blocks: false, since: FROM, hasAgreed: true }));
  const saved = { zoneId: 101, note: "", createdBy: "ann", createdAt: new Date(FROM), plan };
  await database.db.insert(reviewPlans).values([
    { ...saved, name: "First switch", watch: { at: NOW, followedSince: FROM, rules, hits: [] } },
    { ...saved, name: "Idea", watch: { at: NOW, followedSince: null, rules, hits: [] } },
  ]);
  const { hands } = await read();
  expect(hands).toContainEqual({
    text: 'Zone 101: rule 942100 logs since 2026-11-16, against the plan "First switch"; 1 other rule differs, too',
    page: "/review?zone=101",
  });
  expect(JSON.stringify(hands)).not.toContain("Idea");
});

test("silences that end, keys that expire and exclusions that were applied before the next digest are listed", async () => {
  const made = { roles: ["reader" as const] };
  await database.db.insert(apiKeys).values([
    {
      ...made,
      keyHash: Buffer.alloc(32, 1),
      keyId: "a",
      name: "grafana",
      expiresAt: new Date(NOW + 2 * DAY_MS),
    },
    {
      ...made,
      keyHash: Buffer.alloc(32, 2),
      keyId: "b",
      name: "later",
      expiresAt: new Date(NOW + 20 * DAY_MS),
    },
  ]);
  const clause = { ruleIds: ["942440"], template: "/x", method: null, parameter: null };
  await database.db.insert(exclusions).values([
    { zoneId: 101, key: "a", clause, proposedAt: new Date(FROM), followedAt: new Date(FROM + DAY_MS) },
    { zoneId: 101, key: "b", clause, proposedAt: new Date(FROM), followedAt: null },
  ] as (typeof exclusions.$inferInsert)[]);
  const genie = { kind: "opsgenie", name: "genie", apiKey: createSecret("key") } as const;
  const alerting = () => ({ ...SERVICE.alerting(), channels: [genie] });
  const texts = (await read(EVERYONE, { alerting })).hands.map(({ text }) => text);
  expect(texts).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^Channel genie: Opsgenie ends on 2027-04-05/),
      "Key grafana expires 2026-11-25 08:00 UTC",
      expect.stringMatching(/^Zone 101: exclusion \d+ was applied on 2026-11-17/),
    ]),
  );
  expect(texts.join()).not.toContain("later");
  const reader = { ...EVERYONE, scopes: new Set(["read"] as const) };
  expect((await read(reader)).hands.map(({ text }) => text).join()).not.toContain("grafana");
});

test("no text holds an address, also not of a rule that is called one", async () => {
  await watch(101, FROM - 7 * DAY_MS);
  await count(101, "203.0.113.77", 1, 10);
  await fire({ at: FROM, ruleId: "203.0.113.77", mutedBy: "few-addresses" });
  const key = { keyHash: Buffer.alloc(32), roles: ["reader" as const], expiresAt: new Date(NOW + DAY_MS) };
  await database.db.insert(apiKeys).values({ ...key, keyId: "a", name: "scraper 203.0.113.77" });
  const figures = await read();
  expect(figures.changedRules).toHaveLength(1);
  expect(JSON.stringify([figures, describeWeek(figures, {})])).not.toContain("203.0.113.77");
});

test("digest shows the last week that is over, and refuses one that is not", async () => {
  const ask = (week?: string) =>
    performOn(database, showDigest, week === undefined ? {} : { week }, { by: "alice", now: NOW });
  expect(await ask()).toMatchObject({ from: "2026-11-16", to: "2026-11-23" });
  expect(await ask("2026-11-15")).toMatchObject({ from: "2026-11-09", to: "2026-11-16" });
  expect(await ask("2026-11-22")).toMatchObject({ from: "2026-11-16" });
  await expect(ask("2026-11-23")).rejects.toMatchObject({ statusCode: 422, mistakes: [{ field: "week" }] });
});

test.each(Object.entries(HOSTILE))("a rule called %s fits every channel and links nothing", (_name, text) => {
  const rule = { zoneId: 101, ruleId: text };
  const figures = {
    from: "2026-11-16",
    to: "2026-11-23",
    events: {
      total: 1,
      before: null,
    },
    hours: {
      passed: 168,
      sealed: 168,
      open: 0,
      gap: 0,
      unwatched: 0,
    },
    changedZones: [{ zoneId: 101, total: 1, before: 0, hoursBefore: 0 }],
    silentRules: Array.from({ length: 5 }, () => ({ zoneId: 101, ruleId: text })),
    changedRules: Array.from({ length: 5 }, () => ({
      ...rule,
      total: 1,
      before: 0,
    })),
    alerts: {
      fired: 0,
      notified: 0,
      acknowledged: 0,
      medianMs: null,
      worstMs: null,
    },
    marks: [],
    fewAddresses: Array.from({ length: 5 }, () => ({
      ...rule,
      alerts: 1,
    })),
    storage: null,
    hands: Array.from({ length: 20 }, () => ({
      text,
      page: null,
    })),
  };
  const alert = { state: "resolved", transition: 1, firedAtMs: TO, resolvedAtMs: NOW } as const;
  const message = buildWeeklyMessage({
    alertId: 1,
    fingerprint: "f",
    reason: "first",
    figures,
    zones: {},
    alert: {
      ...alert,
      spikeId: null,
      transitions: [],
    },
  });
  for (const { render, check } of Object.values(FORMS))
    for (const body of render(alertMessage.parse(message))) {
      check(body);
    }
});

describe("sending", () => {
  const never = new AbortController().signal;
  const run = (over: Partial<SendDigestDeps> = {}) =>
    createSendDigestJob({
      database,
      clock: () => NOW,
      routing: () => routeToAll(["chat", "mail"]),
      digestChannels: () => ["chat", "mail"],
      readWeek: (week) => readWeek({ db: database.db, now: NOW, caller: EVERYONE, service: SERVICE }, week),
      expression: "0 0 7 * * 1",
      afterAlerts: async () => {},
      ...over,
    }).run({} as never, never);
  const outbox = async () =>
    (await database.db.select().from(notifications).orderBy(notifications.id)).map((row) => ({
      ...row,
      message: alertMessage.parse(row.content),
    }));
  const sent = async () => (await outbox()).map(({ channel, message }) => `${channel} ${message.reason}`);

  test("each channel gets one message, which pages nobody", async () => {
    await watch(101, FROM - 7 * DAY_MS);
    await run();
    expect(await sent()).toEqual(["chat first", "mail first"]);
    const [first] = await outbox();
    expect(first?.message).toMatchObject({
      kind: "weekly",
      state: "resolved",
      severity: "info",
      zoneId: null,
      headline: "Week of 2026-11-16: 168 of 168 hours sealed",
    });
    expect(await run()).toBe("every channel was sent the digest of the last week");
    expect(await sent()).toHaveLength(2);
  });

  test("eight runs at once send it once", async () => {
    await Promise.all(Array.from({ length: 8 }, () => run()));
    expect(await sent()).toEqual(["chat first", "mail first"]);
    expect(await database.db.$count(alerts)).toBe(1);
  });

  test("a run that fails before or after it wrote is repeated without a second message", async () => {
    const fail = () => Promise.reject(new Error("killed"));
    await expect(run({ readWeek: fail })).rejects.toThrow("killed");
    expect(await sent()).toEqual([]);
    await expect(run({ afterAlerts: fail })).rejects.toThrow("killed");
    await run();
    expect(await sent()).toEqual(["chat first", "mail first"]);
  });

  test("a channel that is named later gets the digest alone", async () => {
    await run({ digestChannels: () => ["chat"] });
    await run();
    await run();
    expect(await sent()).toEqual(["chat first", "mail first"]);
  });

  test("the digest is not sent before its time, and is made up for on any later day", async () => {
    expect(await run({ clock: () => TO + 7 * HOUR_MS - 1 })).toBe("the digest of the last week is not due");
    await run({ clock: () => TO + 6 * DAY_MS });
    await run({ clock: () => TO + 7 * DAY_MS + 7 * HOUR_MS });
    expect((await outbox()).map(({ message }) => message.headline.slice(0, 18))).toEqual([
      "Week of 2026-11-16",
      "Week of 2026-11-16",
      "Week of 2026-11-23",
      "Week of 2026-11-23",
    ]);
  });

  test("without a channel nothing is read or sent", async () => {
    const readNothing = () => Promise.reject(new Error("read"));
    expect(await run({ digestChannels: () => [], readWeek: readNothing })).toMatch(/no channel/);
    expect(await sent()).toEqual([]);
  });
});

test.each(["2026-11-23T00:00:00Z", "2026-11-25T12:00:00Z", "2026-11-29T23:59:59.999Z"])(
  "at %s the last week is the one from 16 November",
  (at) => {
    expect(lastWeek(Date.parse(at))).toEqual(WEEK);
  },
);
