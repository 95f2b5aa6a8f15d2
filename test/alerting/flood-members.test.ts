import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { readNewestAlerts } from "#db/alerting/alerts.ts";
import { silences } from "#db/schema/silences.ts";
import { spikes } from "#db/schema/spikes.ts";
import { DEFAULT_TIMING, type Routing, routeToAll } from "#stages/alerting/routing/routing.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { acknowledgeByHand, resolveAlert } from "../operations/act-by-hand.ts";
import { at, createAlertWorld } from "./alert-world.ts";
import { insertSpike } from "./insert-spike.ts";

const FLOOD = ["1", "2", "3", "4", "5"];
let database: MigratedDatabase;
let world: ReturnType<typeof createAlertWorld>;

beforeAll(async () => {
  database = await createMigratedDatabase();
  world = createAlertWorld(database);
});
afterAll(() => database.drop());
beforeEach(() => world.clear());

function grouped(over: Partial<Routing> = {}, groupWaitMs = 0): { routing: () => Routing } {
  const all = routeToAll(["chat"]);
  const timing = { ...DEFAULT_TIMING, groupWaitMs };
  return { routing: () => ({ ...all, root: { ...all.root, timing }, ...over }) };
}

async function spike(rules: readonly string[], minutes = 0, over: object = {}): Promise<void> {
  for (const ruleId of rules)
    await insertSpike(database.db, { openedAt: at(minutes), zoneId: 101, ruleId, ...over });
}

async function close(rules: readonly string[], minutes: number): Promise<void> {
  for (const rule of rules)
    await database.db
      .update(spikes)
      .set({ closedAt: at(minutes) })
      .where(eq(spikes.ruleId, rule));
}

async function acknowledgeFlood(): Promise<void> {
  const flood = (await world.alerts()).find(({ kind }) => kind === "group");
  await acknowledgeByHand(database, { alertId: flood?.id ?? 0, by: "a", note: null, atMs: at(5).getTime() });
}

/** `first 1,2,3`: the reason of each message and the rules that it names. */
const sent = async () =>
  (await world.messages()).map(({ message }) => {
    const members = message.members?.map(({ ruleId }) => ruleId).sort();
    return `${message.reason} ${members?.join(",") ?? message.ruleId}`;
  });

test("rules whose silence ends after another flood came and went are one message", async () => {
  const silenced = ["91", "92", "93", "94", "95", "96"];
  await world.silence({ rule: ["9*"] }, 60);
  await spike(silenced);
  await world.runAt(1, grouped());
  await spike(FLOOD, 5);
  await world.runAt(6, grouped());
  await close(FLOOD, 25);
  await world.runAt(26, grouped());
  await database.db.delete(silences);
  await world.runAt(61, grouped());
  await world.runAt(62, grouped());
  expect(await sent()).toEqual(["first 1,2,3,4,5", "resolved 1,2,3,4,5", "first 91,92,93,94,95,96"]);
});

test("a rule of an acknowledged flood that was over for hours and spikes again is notified of once", async () => {
  await spike(FLOOD, 0, { severity: "critical" });
  await world.runAt(1, grouped());
  await acknowledgeFlood();
  await close(["1"], 20);
  await world.runAt(21, grouped());
  await spike(["1"], 600, { severity: "critical", windowCount: 90_000 });
  for (const minutes of [601, 602, 610, 900]) await world.runAt(minutes, grouped());
  const news = (await sent()).filter((line) => !line.startsWith("acknowledged"));
  expect(news).toEqual(["first 1,2,3,4,5", "worse 1,2,3,4,5"]);
});

test("a rule of an acknowledged flood that pauses for some minutes does not notify", async () => {
  await spike(FLOOD, 0, { severity: "critical" });
  await world.runAt(1, grouped());
  await acknowledgeFlood();
  await close(["1"], 20);
  await world.runAt(21, grouped());
  await spike(["1"], 30, { severity: "critical" });
  for (const minutes of [31, 40, 200]) await world.runAt(minutes, grouped());
  expect((await sent()).filter((line) => !line.startsWith("acknowledged"))).toEqual(["first 1,2,3,4,5"]);
});

test("a second rule of an acknowledged flood that becomes critical hours later is notified of once", async () => {
  await spike(FLOOD);
  await world.runAt(1, grouped());
  const worsen = (rule: string) =>
    database.db.update(spikes).set({ severity: "critical" }).where(eq(spikes.ruleId, rule));
  await worsen("3");
  await world.runAt(10, grouped());
  await acknowledgeFlood();
  const before = (await sent()).length;
  await worsen("4");
  for (const minutes of [180, 181, 300]) await world.runAt(minutes, grouped());
  expect((await sent()).slice(before)).toEqual(["worse 1,2,3,4,5"]);
});

test("an alert that a person has resolved inhibits no other alert", async () => {
  const over = grouped({
    inhibitions: [{ source: { severity: ["critical"] }, target: { severity: ["warning"] }, equal: ["zone"] }],
  });
  await spike(["1"], 0, { severity: "critical" });
  await spike(["2"], 1);
  await world.runAt(2, over);
  expect(await sent()).toEqual(["first 1"]);
  const alert = (await world.alerts()).find(({ ruleId }) => ruleId === "1");
  await resolveAlert(database, { alertId: alert?.id ?? 0, by: "a", note: null, atMs: at(3).getTime() });
  for (const minutes of [4, 60]) await world.runAt(minutes, over);
  expect(await sent()).toEqual(["first 1", "resolved 1", "first 2"]);
});

test("a flood that is over before a long group_wait is one message, and one for its end", async () => {
  const over = grouped({}, 20 * 60_000);
  await spike([...FLOOD, "6", "7"]);
  for (const minutes of [1, 17]) await world.runAt(minutes, over);
  expect(await sent()).toEqual([]);
  await close([...FLOOD, "6", "7"], 18);
  for (const minutes of [18, 19, 20]) await world.runAt(minutes, over);
  expect(await sent()).toEqual(["first 1,2,3,4,5,6,7", "resolved 1,2,3,4,5,6,7"]);
});

test("a flood's message says what its sources have in common, and counts no rules as events", async () => {
  await spike(FLOOD, 0, { windowCount: 40 });
  const finding = {
    kind: "rules_per_ip",
    key: "198.51.100.77",
    members: 40,
    usualMembers: 0,
    windowMinutes: 15,
    count: 40,
    usual: 1,
    threshold: 15,
    score: 13,
    since: 1,
  };
  const sources = {
    kind: "rules_per_ip",
    findings: [finding],
    grown: [],
    rules: [],
    events: 80,
    isMasked: false,
  };
  await spike(["(sources)"], 0, { kind: "sources", severity: "critical", windowCount: 40, sources });
  await world.runAt(1, grouped());
  const [{ message } = { message: null }] = await world.messages();
  expect(message).toMatchObject({
    headline:
      "Flood: 5 rules and sources in zone 101 are spiking at once: many rules from one address, 1 (40), 2 (40) and 3 more",
    count: 200,
  });
  expect(message?.members?.[0]).toMatchObject({
    finding:
      "198.51.100.77 triggered 40 different rules in 15 min; usually at most 1 at this hour, the threshold is 15",
  });
});

test("the alerts of more rules than a statement has parameters can be read", async () => {
  const fingerprints = Array.from({ length: 70_000 }, (_, index) => String(index));
  expect((await readNewestAlerts(database.db, fingerprints)).size).toBe(0);
});
