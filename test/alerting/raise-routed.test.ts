import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { alerts } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { spikes } from "#db/schema/spikes.ts";
import { alertMessage } from "#model/alert-message.ts";
import { WEEKDAYS } from "#model/kinds.ts";
import {
  DEFAULT_TIMING,
  type Route,
  type Routing,
  routeToAll,
  type Timing,
} from "#stages/alerting/routing/routing.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { at, createAlertWorld } from "./alert-world.ts";
import { insertSpike } from "./insert-spike.ts";

let database: MigratedDatabase;
let world: ReturnType<typeof createAlertWorld>;

beforeAll(async () => {
  database = await createMigratedDatabase();
  world = createAlertWorld(database);
});
afterAll(() => database.drop());
beforeEach(() => world.clear());

function route(over: Partial<Omit<Route, "timing">> & { timing?: Partial<Timing> }): Route {
  const timing = { ...DEFAULT_TIMING, groupWaitMs: 0, ...over.timing };
  return { matchers: {}, channels: [], continue: false, routes: [], ...over, timing };
}

function routing(over: Partial<Routing> = {}): { routing: () => Routing } {
  return { routing: () => ({ ...routeToAll(["chat", "pager"]), ...over }) };
}

const BY_SEVERITY = routing({
  root: route({
    channels: ["chat"],
    routes: [
      route({
        matchers: { severity: ["critical"] },
        channels: ["pager"],
        continue: true,
        timing: { repeatIntervalMs: 3_600_000 },
      }),
      route({ channels: ["chat"] }),
    ],
  }),
});

async function floodOf(rules: number, minutes = 0, first = 100_000): Promise<void> {
  for (let index = 0; index < rules; index += 1)
    await insertSpike(database.db, { openedAt: at(minutes), ruleId: String(first + index) });
}

async function outboxOf(channel: string) {
  const rows = await database.db
    .select()
    .from(notifications)
    .where(eq(notifications.channel, channel))
    .orderBy(notifications.id);
  return rows.map(({ content }) => alertMessage.parse(content));
}

test("an alert notifies the channels of its routes, and its end exactly the notified channels", async () => {
  const id = await world.openSpike();
  await world.runAt(1, BY_SEVERITY);
  expect(await world.outbox()).toEqual(["1 first chat"]);
  await database.db.update(spikes).set({ severity: "critical" });
  await world.runAt(2, BY_SEVERITY);
  expect((await world.outbox()).slice(1)).toEqual(["2 first pager", "2 worse chat"]);

  // Its routes now lead to no channel; the notified channels still get the resolve.
  await world.closeSpike(id, 20);
  await world.runAt(21, routing({ root: route({ channels: [] }) }));
  expect((await world.outbox()).slice(3).sort()).toEqual(["3 resolved chat", "3 resolved pager"]);
});

test("every channel is reminded at its own repeat interval", async () => {
  await world.openSpike(0, { severity: "critical" });
  await world.runAt(1, BY_SEVERITY);
  for (const minutes of [60, 61, 62, 121, 122, 241]) await world.runAt(minutes, BY_SEVERITY);
  expect((await world.outbox()).slice(2)).toEqual([
    "2 repeat pager",
    "3 repeat pager",
    "4 repeat pager",
    "4 repeat chat",
  ]);
});

test("a channel in quiet hours is notified after them if the alert still fires", async () => {
  const night = {
    timeZone: "UTC",
    days: WEEKDAYS,
    fromMinute: 15 * 60,
    toMinute: 16 * 60,
    channels: ["chat"],
    matchers: {},
    critical: "tell" as const,
  };
  const quiet = routing({ quietHours: [night] });
  const over = await world.openSpike(0, { ruleId: "920100" });
  await world.openSpike();
  await world.openSpike(0, { ruleId: "930100", severity: "critical" });
  await world.runAt(1, quiet);
  expect((await world.outbox()).sort()).toEqual([
    "1 first chat",
    "1 first pager",
    "1 first pager",
    "1 first pager",
  ]);
  await world.closeSpike(over, 20);
  await world.runAt(21, quiet);
  await world.runAt(29, quiet);
  expect((await world.outbox()).slice(4)).toEqual(["2 resolved pager"]);
  await world.runAt(30, quiet);
  await world.runAt(31, quiet);
  expect((await world.outbox()).slice(5)).toEqual(["2 first chat"]);
});

test("an inhibited alert notifies after its source is resolved, and never if it ends first", async () => {
  const inhibit = routing({
    inhibitions: [{ source: { severity: ["critical"] }, target: { severity: ["warning"] }, equal: ["zone"] }],
  });
  const grave = await world.openSpike(0, { severity: "critical", ruleId: "920100" });
  await world.openSpike();
  const short = await world.openSpike(0, { ruleId: "930100" });
  await world.runAt(1, inhibit);
  expect(await world.outbox()).toEqual(["1 first chat", "1 first pager"]);
  await world.closeSpike(short, 10);
  await world.runAt(11, inhibit);
  await world.closeSpike(grave, 20);
  await world.runAt(21, inhibit);
  expect((await world.outbox()).slice(2).sort()).toEqual([
    "2 first chat",
    "2 first pager",
    "2 resolved chat",
    "2 resolved pager",
  ]);
});

test("the first message waits for companions, and no longer than the group's wait", async () => {
  const waiting = routing({ root: route({ channels: ["chat"], timing: { groupWaitMs: 120_000 } }) });
  await world.openSpike();
  await world.runAt(1, waiting);
  expect(await world.outbox()).toEqual([]);
  await world.runAt(2, waiting);
  expect(await world.outbox()).toEqual(["1 first chat"]);
});

test("1,000 rules that spike within a minute are one message per channel, and each rule is in it", async () => {
  const rows = Array.from({ length: 1_000 }, (_, index) => String(100_000 + index));
  await insertSpike(database.db, { openedAt: at(0), ruleId: "100000" });
  const [template] = await database.db.select().from(spikes);
  if (template === undefined) throw new Error("no spike");
  const { id: _, ...values } = template;
  for (let start = 1; start < rows.length; start += 500) {
    const chunk = rows.slice(start, start + 500).map((ruleId) => ({ ...values, ruleId }));
    await database.db.insert(spikes).values(chunk);
  }
  await Promise.all([world.runAt(1), world.runAt(1)]);
  for (const channel of ["chat", "pager"]) {
    const messages = await outboxOf(channel);
    expect(messages).toHaveLength(1);
    expect(messages[0]?.headline).toContain("1,000 rules in zone 101");
    expect(messages[0]?.members?.map(({ ruleId }) => ruleId).sort()).toEqual(rows);
  }
  // The flood's own and one that can be found for every rule.
  expect(await database.db.$count(alerts)).toBe(1_001);

  await database.db.update(spikes).set({ closedAt: at(20) });
  await Promise.all([world.runAt(21), world.runAt(21)]);
  await world.runAt(22);
  const ends = await outboxOf("chat");
  expect(ends.map(({ reason }) => reason)).toEqual(["first", "resolved"]);
  expect(ends[1]?.members).toHaveLength(1_000);
  expect(await database.db.$count(alerts, eq(alerts.state, "resolved"))).toBe(1_001);
});

test("a group that grows notifies once after its group interval, with the new members", async () => {
  await floodOf(6);
  await world.runAt(1);
  await floodOf(3, 2, 200_000);
  for (const minutes of [3, 4, 5]) await world.runAt(minutes);
  expect(await world.outbox()).toEqual(["1 first chat", "1 first pager"]);
  for (const minutes of [6, 7, 20]) await world.runAt(minutes);
  expect((await world.outbox()).slice(2)).toEqual(["2 worse chat", "2 worse pager"]);
  expect((await outboxOf("chat"))[1]?.members).toHaveLength(9);
});

test("fewer alerts than `group_from` keep their own messages, and zones are not grouped together", async () => {
  await floodOf(4);
  for (let index = 0; index < 4; index += 1)
    await insertSpike(database.db, { openedAt: at(0), zoneId: 102, ruleId: String(index) });
  await world.runAt(1);
  expect(await outboxOf("chat")).toHaveLength(8);
});

test("alerts with a notification stay out of a group that opens later", async () => {
  await floodOf(2);
  await world.runAt(1);
  await floodOf(6, 2, 200_000);
  await world.runAt(3);
  await database.db.update(spikes).set({ closedAt: at(20) });
  await world.runAt(21);
  const said = (await outboxOf("chat")).map(({ reason, members }) => `${reason} ${members?.length ?? 1}`);
  expect(said.sort()).toEqual(["first 1", "first 1", "first 6", "resolved 1", "resolved 1", "resolved 6"]);
});

test("ten concurrent runs notify of a group and its end once", async () => {
  await floodOf(8);
  await Promise.all(Array.from({ length: 10 }, () => world.runAt(1)));
  expect(await world.outbox()).toEqual(["1 first chat", "1 first pager"]);
  await database.db.update(spikes).set({ closedAt: at(20) });
  await Promise.all(Array.from({ length: 10 }, () => world.runAt(21)));
  expect((await world.outbox()).slice(2)).toEqual(["2 resolved chat", "2 resolved pager"]);
});

test("a group that fires again within half an hour is the same alert, and notifies nobody anew", async () => {
  await floodOf(6);
  await world.runAt(1);
  await database.db.update(spikes).set({ closedAt: at(20) });
  await world.runAt(21);
  await floodOf(6, 30);
  await world.runAt(31);
  const sent = await outboxOf("chat");
  expect(sent.map(({ reason }) => reason)).toEqual(["first", "resolved", "worse"]);
  expect(new Set(sent.map(({ dedupeKey }) => dedupeKey)).size).toBe(1);
});
