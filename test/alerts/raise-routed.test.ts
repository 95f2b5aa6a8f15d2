import { eq } from "drizzle-orm";
import { expect, test } from "vitest";
import {
  DEFAULT_TIMING,
  type Route,
  type Routing,
  routeToAll,
  type Timing,
} from "#alerts/rules/routing/routing.ts";
import { alerts } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { spikes } from "#db/schema/spikes.ts";
import { createActionStates } from "#model/action-class.ts";
import { alertMessage } from "#model/alert-message.ts";
import { WEEKDAYS } from "#model/kinds.ts";
import { at, openAlertWorld } from "./alert-world.ts";
import { attackerOf, incidentOf } from "./incident.ts";
import { repeatSpike } from "./insert-spike.ts";
import { EVERYDAY } from "./support.ts";

const { database, world } = await openAlertWorld();

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

test("the first message waits for the incident of its rule, and no longer than group_wait", async () => {
  const waiting = routing({ root: route({ channels: ["chat"], timing: { groupWaitMs: 120_000 } }) });
  await world.openSpike();
  await world.runAt(1, waiting);
  expect(await world.outbox()).toEqual([]);
  await world.runAt(2, waiting);
  expect(await world.outbox()).toEqual(["1 first chat"]);
});

test("1,000 rules that are part of an incident are one message per channel, and each rule is in it", async () => {
  const rows = Array.from({ length: 1_000 }, (_, index) => String(100_000 + index));
  const memberOf = await world.openSpike(0, incidentOf(attackerOf("203.0.113.9")));
  await world.openSpike(0, { ruleId: "100000", memberOf });
  await repeatSpike(database.db, rows.length);
  await Promise.all([world.runAt(1), world.runAt(1)]);
  for (const channel of ["chat", "pager"]) {
    const messages = await outboxOf(channel);
    expect(messages).toHaveLength(1);
    expect(messages[0]?.members?.map(({ ruleId }) => ruleId).sort()).toEqual(rows);
  }
  // The incident's own and one that can be found for every rule.
  expect(await database.db.$count(alerts)).toBe(1_001);

  await database.db.update(spikes).set({ closedAt: at(20), windowCount: EVERYDAY });
  await Promise.all([world.runAt(21), world.runAt(21)]);
  await world.runAt(22);
  const ends = await outboxOf("chat");
  expect(ends.map(({ reason }) => reason)).toEqual(["first", "resolved"]);
  expect(ends[1]?.members).toHaveLength(1_000);
  expect(await database.db.$count(alerts, eq(alerts.state, "resolved"))).toBe(1_001);
});

test("messages and the details of open alerts count actions by the words of the configuration", async () => {
  const given = { ...routing(), actions: createActionStates({ stopped: ["allow"], through: [] }) };
  await world.openSpike();
  await world.runAt(1, given);
  const [sent] = await world.messages();
  expect(sent?.message.actions).toEqual({ blocked: 44, challenged: 0, logged: 6, other: 0 });
  await database.db.update(spikes).set({ windowCount: 80 });
  await world.runAt(2, given);
  const [row] = await world.alerts();
  expect(row?.details).toMatchObject({ message: { count: 80, actions: { blocked: 44, logged: 6 } } });
});
