import { eq, gte } from "drizzle-orm";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { deleteExpired } from "#db/people/retention.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { ruleBuckets } from "#db/schema/rules.ts";
import { minutesFrom } from "#detection/rules/detection-settings.ts";
import { HOUR_MS } from "#lib/units.ts";
import { ask, askAll, openApiWorld } from "./api-world.ts";

/** A whole hour. */
const START = Date.UTC(2026, 10, 20, 10);
const NOW = START + 5 * HOUR_MS + 30 * 60_000;
const world = openApiWorld();
const start = () => world.start({ clock: () => NOW });

async function count(zoneId: number, ruleId: string, minutes: readonly (readonly [number, number])[]) {
  const hours = new Map<number, number>();
  const { db } = world.database();
  for (const [minute, total] of minutes) {
    const at = START + minute * 60_000;
    const hour = at - (at % HOUR_MS);
    hours.set(hour, (hours.get(hour) ?? 0) + total);
    await db
      .insert(ruleBuckets)
      .values({ zoneId, ruleId, width: 60, startsAt: new Date(at), total, blocked: total });
  }
  for (const [hour, total] of hours)
    await db
      .insert(ruleBuckets)
      .values({ zoneId, ruleId, width: 3_600, startsAt: new Date(hour), total, blocked: total });
}

/** Hour by hour from START: sealed, a gap, searched, open, and the present one. */
async function cover(zoneId: number) {
  const rows = [
    { state: "sealed" as const, sealedAt: new Date(NOW), evidence: {} },
    { state: "gap" as const, sealedAt: new Date(NOW), gapReason: "the platform was away" },
    { searchedThrough: new Date(START + 3 * HOUR_MS) },
    {},
    { searchedThrough: new Date(NOW - 60_000) },
  ];
  const offsets = [0, 1, 2, 3, 5];
  await world
    .database()
    .db.insert(coverageWindows)
    .values(
      rows.map((row, n) => ({ zoneId, startsAt: new Date(START + (offsets[n] ?? 0) * HOUR_MS), ...row })),
    );
}

beforeAll(async () => {
  await cover(101);
  await cover(102);
  await count(101, "942100", [
    [0, 5],
    [61, 7],
    [301, 1],
  ]);
  await count(101, "", [[2, 3]]);
  for (let n = 0; n < 30; n++) await count(102, `9410${n + 10}`, [[n % 7, 1 + (n % 4)]]);
});

interface Trend {
  readonly points: {
    readonly startsAt: string;
    readonly total: number;
    readonly coverage: string;
    readonly isCovered: boolean;
  }[];
}

test("a trend has every bucket of the span, with what is known of its coverage", async () => {
  const { url } = await start();
  const span = `from=${START - HOUR_MS}&to=${START + 7 * HOUR_MS}`;
  const key = await world.key("reader");
  const { points } = await ask<Trend>(url, `/api/v1/trends?zone=101&rule=942100&${span}`, key);

  expect(points.map(({ total, coverage, isCovered }) => [total, coverage, isCovered])).toEqual([
    [0, "unwatched", false],
    [5, "sealed", true],
    [7, "gap", false],
    [0, "searched", true],
    [0, "open", false],
    [0, "open", false],
    [1, "open", false],
    [0, "not yet", false],
  ]);
  expect(points[1]?.startsAt).toBe("2026-11-20T10:00:00.000Z");
});

test("a minute that the search has come past is covered though its hour is not over", async () => {
  const { url } = await start();
  const span = `from=${NOW - 3 * 60_000}&to=${NOW}&width=minute`;
  const { points } = await ask<Trend>(url, `/api/v1/trends?zone=101&${span}`, await world.key("reader"));

  expect(points.map(({ coverage }) => coverage)).toEqual(["searched", "searched", "open"]);
});

test("left out, the rule is all rules; empty, it is the events without one", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const sum = async (query: string) => {
    const { points } = await ask<Trend>(url, `/api/v1/trends?zone=101&from=${START}${query}`, key);
    return points.reduce((total, point) => total + point.total, 0);
  };

  expect([await sum(""), await sum("&rule="), await sum("&rule=942100")]).toEqual([16, 3, 13]);
  expect(await sum("&width=minute")).toBe(16);
});

test.each([
  ["5,001 minutes", `from=${NOW - 5_001 * 60_000}&to=${NOW}&width=minute`, "span-too-long"],
  ["an end before the begin", `from=${NOW}&to=${NOW - HOUR_MS}`, "invalid-span"],
])("%s are refused", async (_what, query, slug) => {
  const { url } = await start();
  const key = await world.key("reader");
  const problem = await ask(url, `/api/v1/trends?zone=101&${query}`, key, { status: 422 });

  expect(problem["type"]).toBe(`urn:longwatch:problem:${slug}`);
});

interface Rule {
  readonly lastSeen: string;
  readonly zoneId: number;
  readonly ruleId: string;
  readonly total: number;
  readonly baseline: number | null;
}

test.each(["total", "blocked", "lastSeen"])(
  "rules sorted by %s page without doubles and losses",
  async (sort) => {
    const { url } = await start();
    const key = await world.key("reader");
    const whole = await askAll<Rule>(url, `/api/v1/rules?sort=${sort}&from=${START}`, key, 500);
    const paged = await askAll<Rule>(url, `/api/v1/rules?sort=${sort}&from=${START}`, key, 3);
    const values = whole.map((rule) => (sort === "lastSeen" ? Date.parse(rule.lastSeen) : rule.total));

    expect(whole).toHaveLength(32);
    expect(paged).toEqual(whole);
    expect(values).toEqual([...values].sort((a, b) => b - a));
  },
);

test("rules sorted by rule are each shown once, however their counts grow between the pages", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const path = `/api/v1/rules?sort=rule&zone=102&from=${START}`;
  let grown = 0;
  // The last rule overtakes all others, and one that is shown already falls behind.
  const paged = await askAll<Rule>(url, path, key, 7, async () => {
    grown += 1;
    await count(102, "941039", [[60 * grown, 1_000]]);
  });
  const { db } = world.database();
  const { rowCount } = await db.delete(ruleBuckets).where(gte(ruleBuckets.total, 1_000));

  expect(rowCount).toBeGreaterThan(grown);
  expect(paged.map(({ ruleId }) => ruleId)).toEqual(Array.from({ length: 30 }, (_, n) => `9410${n + 10}`));
});

test("pages of coverage keep the first one's span, also over midnight", async () => {
  let now = Date.UTC(2026, 10, 20, 23, 59);
  const { url } = await world.start({ clock: () => now });
  const key = await world.key("reader");
  type Hour = { readonly zoneId: number; readonly startsAt: string };
  const whole = await askAll<Hour>(url, "/api/v1/coverage", key, 2_000);
  const shown = (hours: readonly Hour[]) => hours.map(({ zoneId, startsAt }) => [zoneId, startsAt]);
  const paged = await askAll<Hour>(url, "/api/v1/coverage", key, 10, async () => {
    now = Date.UTC(2026, 10, 28, 0, 1);
  });

  expect(whole).toHaveLength(28);
  expect(shown(paged)).toEqual(shown(whole));
});

test("a rule was last seen in the minute of its last event, however long the span is", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const seen = async (from: number) => {
    const { items } = await ask<{ items: Rule[] }>(url, `/api/v1/rules?zone=101&from=${from}&to=${NOW}`, key);
    return items.map(({ ruleId, lastSeen }) => [ruleId, lastSeen]);
  };
  const inMinutes = await seen(START + HOUR_MS);
  expect(inMinutes).not.toEqual([]);
  expect(await seen(START - 24 * HOUR_MS)).toEqual(expect.arrayContaining(inMinutes));
});

test("a rule says what it is about, when it was last seen and what is usual", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const from = `from=${START + HOUR_MS}&to=${NOW}`;
  const { items } = await ask<{ items: Rule[] }>(url, `/api/v1/rules?zone=101&${from}`, key);

  expect(items).toEqual([
    {
      zoneId: 101,
      ruleId: "942100",
      title: "SQL injection",
      total: 8,
      blocked: 8,
      logged: 0,
      challenged: 0,
      other: 0,
      lastSeen: "2026-11-20T15:01:00.000Z",
      // Five events in the one watched hour before, over four and a half hours.
      baseline: 22.5,
      openSpikeId: null,
      sparkline: null,
    },
  ]);
});

test("the usual level of a rule counts no event of an hour that its hours do not count", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  // The hours before have five events and, in a gap, seven.
  const from = `from=${START + 2 * HOUR_MS}&to=${NOW}`;
  const { items } = await ask<{ items: Rule[] }>(url, `/api/v1/rules?zone=101&${from}`, key);
  expect(items.map(({ total, baseline }) => [total, baseline])).toEqual([[1, 17.5]]);
});

test("the parts of a rule's trend have equally many buckets, and the last has the rest", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  await count(
    101,
    "941900",
    Array.from({ length: 7 }, (_, hour) => [hour * 60, 60] as const),
  );
  onTestFinished(async () => {
    await world.database().db.delete(ruleBuckets).where(eq(ruleBuckets.ruleId, "941900"));
  });
  // Seven buckets of an hour.
  const path = `/api/v1/rules?zone=101&from=${START}&to=${START + 7 * HOUR_MS}`;
  const { items } = await ask<{ items: (Rule & { sparkline: number[] })[] }>(url, `${path}&points=3`, key);
  expect(items.find(({ ruleId }) => ruleId === "941900")?.sparkline).toEqual([180, 180, 60]);
  for (const { total, sparkline } of items)
    expect(sparkline.reduce((sum, part) => sum + part, 0)).toBe(total);

  const { mistakes } = await ask<{ mistakes: object[] }>(url, `${path}&points=101`, key, { status: 400 });
  expect(mistakes).toMatchObject([{ field: "points", rule: "must be a whole number from 1 to 100" }]);
});

test("coverage pages through every hour of every zone, and gaps name their reasons", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const hours = await askAll<{ zoneId: number; startsAt: string; state: string }>(
    url,
    `/api/v1/coverage?to=${START + 6 * HOUR_MS}`,
    key,
    4,
  );

  expect(hours.map(({ zoneId, state }) => `${zoneId} ${state}`)).toEqual(
    [101, 102].flatMap((zone) =>
      ["sealed", "gap", "searched", "open", "open", "open"].map((state) => `${zone} ${state}`),
    ),
  );
  expect(await askAll(url, "/api/v1/gaps", key, 1)).toMatchObject([
    { zoneId: 101, from: "2026-11-20T11:00:00.000Z", hours: 1, reasons: ["the platform was away"] },
    { zoneId: 102, from: "2026-11-20T11:00:00.000Z", hours: 1 },
  ]);
});

test("zones have the name and the labels of the configuration file", async () => {
  const { url } = await world.start({ zones: () => ({ 101: { name: "shop", labels: { team: "edge" } } }) });
  const key = await world.key("reader");
  const zones = await askAll(url, "/api/v1/zones", key, 10);
  expect(zones).toMatchObject([
    { id: 101, name: "shop", labels: { team: "edge" } },
    { id: 102, name: null, labels: {} },
  ]);
});

test("zones and status say what goes on, to a key of one zone of that zone", async () => {
  const { url } = await start();
  const all = await world.key("reader");
  const own = await world.key("reader", { zoneIds: [102] });

  expect(await askAll(url, "/api/v1/zones", all, 1)).toMatchObject([
    { id: 101, firstHour: "2026-11-20T10:00:00.000Z", newestEventAt: null, spikesOpen: 0 },
    { id: 102 },
  ]);
  // Of the hours that the platform still shows, the first three of the record were read.
  expect(await ask(url, "/api/v1/status", all)).toMatchObject({
    zones: [{ id: 101, copying: { hours: 71, done: 3 } }, { id: 102 }],
    channels: [],
  });
  expect(await ask(url, "/api/v1/status", own)).toMatchObject({ zones: [{ id: 102 }], channels: null });
});

test("minutes of old archive days are deleted, hours and other minutes are not, and the API shows the archive days", async () => {
  const { url } = await start();
  const key = await world.key("reader");
  const { db, pool } = world.database();
  const [old, unarchived, recent] = [100, 99, 60].map((days) => START - days * 86_400_000) as [
    number,
    number,
    number,
  ];
  for (const at of [old, unarchived, recent])
    for (const width of [60, 3_600])
      await db
        .insert(ruleBuckets)
        .values({ zoneId: 101, ruleId: "kept", width, startsAt: new Date(at), total: 4, blocked: 4 });
  for (const at of [old, recent])
    await pool.query(
      `insert into archive_files (bytes, zone_id, day, rows, format, hours, sum, kind, sha256, path)
       values (1, 101, $1, 0, 1, array_fill(0, array[24]), 0, 'events', repeat('a', 64), 'x')`,
      [new Date(at).toISOString().slice(0, 10)],
    );

  const never = {
    rawFrom: 0,
    eventsFrom: 0,
    rollUpsFrom: 0,
    minutesFrom: minutesFrom(NOW),
    addressesFrom: 0,
  };
  await deleteExpired(db, never, NOW);

  const { rows } = await pool.query<{ at: Date; width: number }>(
    "select starts_at as at, width from rule_buckets where rule_id = 'kept' order by 1, 2",
  );
  expect(rows.map(({ at, width }) => [at.getTime(), width])).toEqual([
    [old, 3_600],
    [unarchived, 60],
    [unarchived, 3_600],
    [recent, 60],
    [recent, 3_600],
  ]);
  const days = await ask<{ items: { day: string; isInPostgres: boolean; files: object[] }[] }>(
    url,
    "/api/v1/archive/days?zone=101",
    key,
  );
  expect(days.items.map(({ day, isInPostgres }) => [day, isInPostgres])).toEqual([
    [new Date(old).toISOString().slice(0, 10), false],
    [new Date(recent).toISOString().slice(0, 10), false],
  ]);
  expect(days.items[0]?.files).toEqual([
    expect.objectContaining({ kind: "events", path: "x", sha256: "a".repeat(64), bytes: 1, damage: null }),
  ]);
  const { archive } = await ask<{ archive: object[] }>(url, "/api/v1/status", key);
  expect(archive).toEqual([expect.objectContaining({ zoneId: 101, days: 2, damagedFiles: 0 })]);
  const span = (from: number) => `zone=101&rule=kept&from=${from}&to=${from + HOUR_MS}`;
  for (const path of ["trends", "rules/series"]) {
    const refused = await ask(url, `/api/v1/${path}?${span(old)}&width=minute`, key, { status: 422 });
    expect(JSON.stringify(refused)).toContain("minutes of older archive days are deleted; use width=hour");
    const { points } = await ask<{ points: { total: number; count?: number }[] }>(
      url,
      `/api/v1/${path}?${span(old)}&width=hour`,
      key,
    );
    expect(points.map(({ total, count = total }) => count)).toEqual([4]);
  }
});
