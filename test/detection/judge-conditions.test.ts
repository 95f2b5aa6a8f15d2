import { beforeEach, expect, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { readCondition, type WrittenCondition } from "#archive/rules/query/custom-conditions.ts";
import { insertCustomCondition } from "#db/detection/custom-conditions.ts";
import { eraseSourceUsual } from "#db/people/erase-quarantine.ts";
import { alerts } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { conditionMinutes, conditionZones, customConditions } from "#db/schema/spikes.ts";
import { describeBriefly, describeCount } from "#delivery/rules/message/describe-alert.ts";
import { createRaiseAlertsJob } from "#jobs/alerts/raise-alerts.ts";
import { createJudgeConditionsJob } from "#jobs/detection/judge-conditions.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { alertMessage } from "#model/alert-message.ts";
import type { CustomCondition } from "#model/custom-condition.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { silent } from "../ingest/ingest-support.ts";
import { END, openDetectWorld } from "./detect-support.ts";
import { createRollUp, makeEvent, runJob, storeAll, ZONE } from "./trend-support.ts";

const { database, world } = await openDetectWorld();
beforeEach(() =>
  database.pool.query(
    "truncate alerts, notifications, changed_minutes, custom_conditions, condition_zones, condition_minutes cascade",
  ),
);

let now = 0;
let conditions: readonly CustomCondition[] = [];
const deps = { database, clock: () => now, log: silent, afterSpikes: () => undefined };
const createJudge = () =>
  createJudgeConditionsJob({ ...deps, zoneIds: [ZONE], conditions: () => conditions });
const NOTHING = "no custom condition began or ended";
const toMs = (minute: number) => minute * MINUTE_MS;

function condition(written: Partial<WrittenCondition>): CustomCondition {
  const given = {
    name: "mine",
    filters: [],
    zoneIds: null,
    severity: "error" as const,
    withinMs: HOUR_MS,
    ...written,
  };
  const read = readCondition(given);
  if ("mistakes" in read) throw new Error(JSON.stringify(read.mistakes));
  return read.condition;
}

const ADMIN = { name: "admin", filters: ["path:wildcard:/admin*", "country:not-eq:NL"] };

async function raise(): Promise<void> {
  const search = { title: "Search its events", url: "https://lw.example/explorer", isSearch: true as const };
  const links = [{ ...search, matchers: { kind: ["custom-condition"] } }];
  const routing = () => ({ ...routeToAll(["chat"]), links });
  await runJob(createRaiseAlertsJob({ ...deps, routing, zoneIds: [ZONE], afterAlerts: async () => {} }));
}

async function sent() {
  const rows = await database.db.select().from(notifications).orderBy(notifications.id);
  return rows.map(({ content }) => alertMessage.parse(content));
}

const saw = async () => (await sent()).map(({ reason, headline }) => `${reason}: ${headline}`);
let drawn = 0;

function hit(minute: number, event: Partial<WafEvent> = {}): WafEvent {
  const url = "https://shop.example/admin/login?next=<script>";
  drawn += 1;
  const ip = `203.0.113.${drawn % 200}`;
  const occurredAt = toMs(minute) + (drawn % 60) * 1_000;
  return makeEvent({ url, country: "DE", ip, logId: `c${drawn}`, ...event, occurredAt });
}

/** Stores and rolls events up, as ingest does. */
async function store(events: readonly WafEvent[], options: { expectNew?: boolean } = {}): Promise<void> {
  await storeAll(database, events, options);
  await createRollUp(database)();
}

/** Judges at a minute with a process that was just started, and raises. */
async function judgeAt(minute: number, job = createJudge()) {
  now = toMs(minute);
  const result = await runJob(job);
  await raise();
  return result;
}

test("a count over its limit is one alert with everything in it, on two replicas and after a restart, and it ends", async () => {
  conditions = [condition({ ...ADMIN, moreThan: 3, withinMs: 30 * MINUTE_MS })];
  await world.keep([]);
  await judgeAt(END - 40);
  await store([hit(END - 30), hit(END - 29), hit(END - 29), hit(END - 28, { country: "NL" })]);
  expect(await judgeAt(END - 27)).toBe(NOTHING);
  // The three are not read again: only their counts are known to the next process.
  await store([hit(END - 10, { ip: "198.51.100.7" }), hit(END - 10, { url: "https://shop.example/x" })]);
  now = toMs(END - 9);
  const [one, other] = [createJudge(), createJudge()];
  await Promise.all([runJob(one), runJob(other)]);
  await Promise.all([raise(), raise()]);
  expect(await judgeAt(END - 9)).toBe(NOTHING);
  const [message, ...more] = await sent();
  expect(more).toEqual([]);
  expect(message).toMatchObject({
    kind: "custom-condition",
    severity: "error",
    zoneId: ZONE,
    ruleId: "condition:admin",
    headline: "custom condition admin in zone 101: 4 events within 30 min, more than 3",
    details: [
      "condition: more than 3 events within 30 min, of path:wildcard:/admin*, country:not-eq:NL; every zone, each by itself",
    ],
    count: 4,
    howToSilence: "longwatch silences add --zone 101 --rule=condition:admin --for 2h --reason 'why'",
  });
  expect(message?.top.paths).toEqual([{ value: "/admin/login", count: 4, share: 1 }]);
  expect(message?.top.ips).toHaveLength(4);
  expect(message?.sparkline.slice(-21)).toEqual([1, 2, ...Array<number>(18).fill(0), 1].slice(-21));
  const url = new URL(message?.links[0]?.url ?? "");
  expect(Object.fromEntries(url.searchParams)).toMatchObject({
    zone: "101",
    like: "path:/admin*",
    not: "country:NL",
  });
  if (message === undefined) throw new Error("no message");
  expect(describeCount(message)).toEqual({
    count: "4",
    against: "in 30 minutes, the limit is 3",
    times: null,
  });
  expect(describeBriefly(message)).toBe(message.headline);
  // The oldest leaves the window.
  await judgeAt(END + 1);
  expect(await saw()).toEqual([
    "first: custom condition admin in zone 101: 4 events within 30 min, more than 3",
    "resolved: custom condition admin in zone 101 ended: at most 4 events within 30 min",
  ]);
  expect((await world.readSpikes()).map(({ closedAt }) => closedAt?.getTime())).toEqual([toMs(END)]);
  expect(await judgeAt(END + 2)).toBe(NOTHING);
});

test("a late event counts in its own minute: its window is told if it ended within a day, once, and no older one", async () => {
  conditions = [condition({ ...ADMIN, withinMs: 10 * MINUTE_MS })];
  await world.keep([]);
  await judgeAt(END - 40);
  await store([hit(END - 300)]);
  await judgeAt(END - 20);
  await store([hit(END - 26 * 60)]);
  await judgeAt(END - 19);
  // Before the end of what was told.
  await store([hit(END - 301)]);
  expect(await judgeAt(END - 18)).toBe(NOTHING);
  expect(await saw()).toEqual([
    "first: custom condition admin in zone 101: 1 event within 10 min",
    "resolved: custom condition admin in zone 101 ended: at most 1 event within 10 min",
  ]);
  expect(await world.readSpikes()).toMatchObject([
    { openedAt: new Date(toMs(END - 299)), closedAt: new Date(toMs(END - 290)) },
  ]);
});

test("an event that later turns out to be another one ends the alert that it raised", async () => {
  conditions = [condition(ADMIN)];
  await world.keep([]);
  await judgeAt(END - 40);
  const event = hit(END - 30, { country: null });
  await store([event]);
  await judgeAt(END - 29);
  await store([{ ...event, country: "NL" }], { expectNew: false });
  await database.pool.query(
    "insert into dirty_buckets (zone_id, rule_id, minute) values ($1, '942100', to_timestamp($2))",
    [ZONE, (END - 30) * 60],
  );
  await createRollUp(database)();
  await judgeAt(END - 28);
  expect((await saw()).map((text) => text.split(":")[0])).toEqual(["first", "resolved"]);
});

test("different values are counted once each within the window, whichever minutes have them", async () => {
  conditions = [condition({ ...ADMIN, distinct: "address", moreThan: 2, withinMs: 5 * MINUTE_MS })];
  await world.keep([]);
  await judgeAt(END - 40);
  const of = (minute: number, ip: string) => hit(minute, { ip });
  await store([
    of(END - 30, "10.0.0.1"),
    of(END - 30, "10.0.0.1"),
    of(END - 29, "10.0.0.1"),
    of(END - 28, "10.0.0.2"),
  ]);
  expect(await judgeAt(END - 27)).toBe(NOTHING);
  await store([of(END - 26, "10.0.0.3"), of(END - 26, "")]);
  await judgeAt(END - 25);
  expect(await saw()).toEqual([
    "first: custom condition admin in zone 101: 3 different values of address within 5 min, more than 2",
  ]);
});

test("events that do not come are an alert, but not while their hours are unread, and the next event ends it", async () => {
  conditions = [condition({ name: "shop-is-silent", absent: true, withinMs: 2 * HOUR_MS })];
  await world.keep([hit(END - 200)]);
  await judgeAt(END - 100);
  await judgeAt(END - 81);
  expect(await saw()).toEqual([]);
  await database.pool.query(
    "update coverage_windows set searched_through = to_timestamp($1) where searched_through > to_timestamp($1)",
    [(END - 90) * 60],
  );
  await judgeAt(END - 70);
  expect(await saw()).toEqual([]);
  await world.keep([]);
  await judgeAt(END - 70);
  await store([hit(END - 20)]);
  await judgeAt(END - 10);
  expect(await saw()).toEqual([
    "first: custom condition shop-is-silent in zone 101: no event within 2 h",
    "resolved: custom condition shop-is-silent in zone 101: events come again",
  ]);
  const [message] = await sent();
  expect(message && describeCount(message)).toBeNull();
});

test("an absence that ended while nothing judged it is resolved, and the next absence is an alert of its own", async () => {
  conditions = [condition({ name: "quiet", absent: true, withinMs: 30 * MINUTE_MS })];
  await world.keep([hit(END - 140)]);
  await judgeAt(END - 105);
  await world.keep([]);
  // The condition began with the end of the first window without an event, although it was added later.
  expect(await world.readSpikes()).toMatchObject([{ openedAt: new Date(toMs(END - 109)) }]);
  await store([hit(END - 80)]);
  await judgeAt(END - 20);
  await judgeAt(END - 19);
  expect(await saw()).toEqual([
    "first: custom condition quiet in zone 101: no event within 30 min",
    "resolved: custom condition quiet in zone 101: events come again",
    "again: custom condition quiet in zone 101: no event within 30 min",
  ]);
  conditions = [];
  await judgeAt(END - 18);
  // An alert that fired again is held open for half an hour.
  await judgeAt(END + 13);
  expect((await saw()).at(-1)).toBe("resolved: custom condition quiet in zone 101 ended");
});

test("a gap does not end an absence, and an event ends it even if the newest hours are not read", async () => {
  conditions = [condition({ name: "quiet", absent: true, withinMs: 30 * MINUTE_MS })];
  const hour = Math.floor(END / 60);
  await world.keep([hit(END - 240)]);
  await judgeAt(END - 150);
  await world.keep([], { gaps: [hour - 2] });
  await judgeAt(END - 20);
  expect((await saw()).map((text) => text.split(":")[0])).toEqual(["first"]);
  await database.pool.query("delete from coverage_windows where starts_at >= to_timestamp($1)", [
    (hour - 1) * 3_600,
  ]);
  await judgeAt(END - 10);
  await store([hit(END - 9)]);
  await judgeAt(END - 5);
  expect((await saw()).map((text) => text.split(":")[0])).toEqual(["first", "resolved"]);
});

test("a gap is not an absence", async () => {
  conditions = [condition({ absent: true, withinMs: 2 * HOUR_MS })];
  const hour = Math.floor(END / 60);
  await world.keep([hit(END - 240)], { gaps: [hour - 2] });
  await judgeAt(END - 5);
  expect(await saw()).toEqual([]);
});

test("a condition that is added finds what its window holds already, with the counts of a recount, and a removed one ends", async () => {
  await world.keep([]);
  const [address] = [condition({ ...ADMIN, name: "addresses", distinct: "address", moreThan: 1 })];
  const any = condition({ ...ADMIN, name: "any", query: "shop" });
  await store([hit(END - 50), hit(END - 30), hit(END - 30), hit(END - 90), hit(END - 5, { country: "NL" })]);
  conditions = [any];
  await insertCustomCondition(database.db, address, "alice");
  await judgeAt(END - 4);
  expect((await world.readSpikes()).map(({ ruleId, windowCount }) => [ruleId, windowCount])).toEqual([
    ["condition:addresses", 3],
    ["condition:any", 3],
  ]);
  const read = () =>
    database.db.select().from(conditionMinutes).orderBy(conditionMinutes.counts, conditionMinutes.minute);
  const bySearch = (await read()).map(({ values, ...one }) => ({ ...one, values: values?.toSorted() }));
  expect(bySearch).toHaveLength(4);
  await database.pool.query(
    "insert into dirty_buckets (zone_id, rule_id, minute) select $1, '942100', to_timestamp(60 * m) from unnest($2::integer[]) m",
    [ZONE, [END - 50, END - 30, END - 5]],
  );
  await createRollUp(database)();
  await judgeAt(END - 3);
  expect((await read()).map(({ values, ...one }) => ({ ...one, values: values?.toSorted() }))).toEqual(
    bySearch,
  );

  // An erasure keeps no hash. What is left is counted anew.
  await database.pool.query("update waf_events set ip = 'erased'");
  await eraseSourceUsual(database.db, ZONE, () => false);
  expect((await read()).map(({ values }) => values)).toEqual([null, null]);
  await judgeAt(END - 3);
  const erased = (await read()).flatMap(({ values }) => values ?? []);
  expect([erased.length, new Set(erased).size]).toEqual([2, 1]);

  conditions = [];
  await database.db.delete(customConditions);
  await judgeAt(END - 2);
  expect((await world.readSpikes()).every(({ closedAt }) => closedAt !== null)).toBe(true);
  expect(await read()).toEqual([]);
  // Without conditions nothing is counted.
  await store([hit(END - 2)]);
  expect(await judgeAt(END - 1)).toBe(NOTHING);
  expect(await database.db.$count(conditionZones)).toBe(0);
  expect(await database.db.$count(alerts)).toBe(2);
});
