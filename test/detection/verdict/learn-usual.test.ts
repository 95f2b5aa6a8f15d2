import { beforeEach, expect, test } from "vitest";
import { zoneUsual } from "#db/schema/sources.ts";
import { spikes } from "#db/schema/spikes.ts";
import { templateOf } from "#detection/rules/verdict/path-template.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { createLearnUsualJob, type LearnUsualDeps } from "#jobs/detection/learn-usual.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { openArchiveWorld, ZONE } from "../../archive/files/archive-world.ts";
import { HOSTILE } from "../../archive/query/draw.ts";
import { makeEvent } from "../trend-support.ts";
import { newSpike } from "./verdict-world.ts";

const world = await openArchiveWorld();
const { database } = world;
const { db } = database;
/** Midnight; the days before it are whole. */
const TODAY = Date.UTC(2026, 10, 20);

beforeEach(async () => {
  await database.pool.query(
    "truncate spikes, waf_events, raw_blocks, rule_buckets, dirty_buckets, coverage_windows, zone_usual, archive_files cascade",
  );
});

let count = 0;
const event = (at: number, over: Partial<WafEvent> = {}) => {
  count += 1;
  return makeEvent({ logId: `e${count}`, occurredAt: at, ...over });
};

async function learn(over: Partial<LearnUsualDeps> = {}): Promise<string | void> {
  const deps = {
    database,
    clock: () => TODAY + HOUR_MS,
    archive: null,
    ipDays: 90,
    actions: BUILT_IN_ACTIONS,
    ...over,
  };
  return createLearnUsualJob(deps).run({ zoneId: ZONE } as never, new AbortController().signal);
}

async function readUsual() {
  const rows = await db.select().from(zoneUsual).orderBy(zoneUsual.dimension, zoneUsual.value);
  return rows.map(({ dimension, value, since }) => [dimension, value, since.getTime() - TODAY]);
}

/** Some weeks of events, among them hostile texts, and every value as often as chance has it. */
function drawEvents(): WafEvent[] {
  let seed = 7;
  const draw = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  return Array.from({ length: 3_000 }, () => {
    const text = HOSTILE[draw(HOSTILE.length)] ?? "";
    return event(TODAY - 12 * DAY_MS + draw(13 * DAY_MS), {
      asn: draw(9) === 0 ? text : `AS${draw(30) ** 2}`,
      ja4: draw(9) === 0 ? text : `t13d${draw(40) ** 2}`,
      ip: draw(20) === 0 ? (["", "erased", null][draw(3)] ?? null) : `203.0.113.${draw(60)}`,
      url: draw(9) === 0 ? text : `https://shop.example.test/p${draw(12) ** 2}/${draw(50)}?q=${draw(3)}`,
    });
  });
}

/** The same, computed event by event. */
function naiveUsual(events: readonly WafEvent[]) {
  const needed = { asn: 5, ja4: 20, path: 3 };
  const users = new Map<string, Map<string, number>>();
  for (const { occurredAt: at, asn, ja4, ip, url } of events) {
    if (at >= TODAY) continue;
    const day = new Date(at).toISOString().slice(0, 10);
    for (const [dimension, value, user] of [
      ["asn", asn, day],
      ["ja4", ja4, ip],
      ["path", templateOf(url ?? ""), ip],
    ] as const) {
      if (!value || !user || user === "erased") continue;
      const key = JSON.stringify([dimension, value]);
      const known = users.get(key) ?? new Map<string, number>();
      users.set(key, known.set(user, Math.min(at, known.get(user) ?? at)));
    }
  }
  return [...users].flatMap(([key, times]) => {
    const [dimension, value] = JSON.parse(key) as [keyof typeof needed, string];
    const since = [...times.values()].sort((one, other) => one - other)[needed[dimension] - 1];
    return since === undefined ? [] : [[dimension, value, since - TODAY]];
  });
}

const sorted = (rows: readonly (readonly unknown[])[]) => rows.map((row) => JSON.stringify(row)).sort();

test("the usual values equal a naive computation over whole days, and a second run changes nothing", async () => {
  const events = drawEvents();
  await world.store(events);
  await learn();
  const found = await readUsual();
  expect(found.length).toBeGreaterThan(20);
  expect(new Set(found.map(([dimension]) => dimension))).toEqual(new Set(["asn", "ja4", "path"]));
  expect(sorted(found)).toEqual(sorted(naiveUsual(events)));
  await Promise.all([learn(), learn()]);
  expect(await readUsual()).toEqual(found);
});

test("days in the archive count as days in Postgres do, whether or not Postgres still has them", async () => {
  const events = drawEvents();
  await world.store(events);
  for (const day of ["2026-11-10", "2026-11-11", "2026-11-12", "2026-11-13"])
    expect(await writeDay(world, { zoneId: ZONE, day })).toMatchObject({
      outcome: "written",
    });
  await database.pool.query(
    "delete from waf_events where occurred_at >= '2026-11-10' and occurred_at < '2026-11-12'",
  );
  await expect(learn()).rejects.toThrow("no archive folder was given");
  await learn({ archive: world });
  expect(sorted(await readUsual())).toEqual(sorted(naiveUsual(events)));
});

test("a mark withdraws what only the attack made usual, and a value keeps the time at which it became usual", async () => {
  const at = TODAY - 3 * DAY_MS + 12 * HOUR_MS;
  const visit = (ip: number, path: string, when: number) =>
    event(when, { ip: `203.0.113.${ip}`, url: `https://shop.example.test${path}` });
  const attack = [1, 2, 3].map((ip) => visit(ip, "/attacked", at + ip * MINUTE_MS));
  const visitors = [1, 2, 3].map((ip) => visit(ip, "/products/7", at - 5 * HOUR_MS + ip));
  const often = [1, 2, 3].flatMap((ip) => [
    visit(ip, "/both", at + ip),
    visit(ip, "/both", at + DAY_MS + ip),
  ]);
  await world.store([...attack, ...visitors, ...often]);
  await learn();
  const since = at - TODAY;
  expect(await readUsual()).toEqual([
    ["path", "/attacked", since + 3 * MINUTE_MS],
    ["path", "/both", since + 3],
    ["path", "/products/{n}", since - 5 * HOUR_MS + 3],
  ]);
  const lastActiveAt = new Date(at + 5 * MINUTE_MS);
  await db
    .insert(spikes)
    .values([
      newSpike(at + MINUTE_MS, { ruleId: "1", mark: "attack", markedAt: lastActiveAt, lastActiveAt }),
      newSpike(at - 5 * HOUR_MS, { ruleId: "2", mark: "misfire", markedAt: lastActiveAt }),
    ]);
  await learn();
  expect(await readUsual()).toEqual([
    ["path", "/both", since + 3],
    ["path", "/products/{n}", since - 5 * HOUR_MS + 3],
  ]);
});

test("values that are no longer seen are forgotten, and so is everything of a zone without events", async () => {
  await db.insert(zoneUsual).values(
    (["asn", "ja4", "path"] as const).map((dimension) => ({
      zoneId: ZONE,
      dimension,
      value: "gone",
      since: new Date(TODAY - 50 * DAY_MS),
    })),
  );
  await db
    .insert(zoneUsual)
    .values({ zoneId: 102, dimension: "asn", value: "other", since: new Date(TODAY) });
  expect(await learn()).toBe("nothing is usual yet");
  expect(await readUsual()).toEqual([["asn", "other", 0]]);
});

test("addresses older than their retention do not count, because a pseudonym may be one of the others", async () => {
  const visit = (ip: string, day: number) =>
    event(TODAY - day * DAY_MS, { ip, url: "https://shop.example.test/products/7" });
  await world.store([visit("203.0.113.1", 1), visit("203.0.113.2", 1), visit("anon-a", 5)]);
  await learn({ ipDays: 4 });
  expect(await readUsual()).toEqual([]);
  await learn();
  expect(await readUsual()).toEqual([["path", "/products/{n}", -DAY_MS]]);
});

test("no address is kept", async () => {
  await world.store(drawEvents());
  await learn();
  const { rows } = await database.pool.query<{ text: string }>(
    "select to_jsonb(u)::text as text from zone_usual u",
  );
  expect(rows.map(({ text }) => text).join("\n")).not.toMatch(/203\.0\.113|erased/);
});
