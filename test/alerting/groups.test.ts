import { eq } from "drizzle-orm";
import { afterAll, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { alerts } from "#db/schema/alerts.ts";
import { silences } from "#db/schema/silences.ts";
import { spikes } from "#db/schema/spikes.ts";
import { loadSubject } from "#faces/cli/operations/subjects.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { type GroupLabel, WEEKDAYS } from "#model/kinds.ts";
import { DEFAULT_TIMING, type Routing, routeToAll } from "#stages/alerting/routing/routing.ts";
import { describeSubject } from "#stages/delivery/message/describe-alert.ts";
import { runStoreCommand } from "../cli/run-store-command.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { resolveAlert } from "../operations/act-by-hand.ts";
import { at, createAlertWorld } from "./alert-world.ts";
import { insertSpike } from "./insert-spike.ts";
import { NOW } from "./support.ts";

const alertsCommand = await loadSubject("alerts");
const silencesCommand = await loadSubject("silences");

let database: MigratedDatabase;
let world: ReturnType<typeof createAlertWorld>;

beforeAll(async () => {
  database = await createMigratedDatabase();
  world = createAlertWorld(database);
});
afterAll(() => database.drop());
beforeEach(() => world.clear());

function groupedBy(...groupBy: GroupLabel[]): { routing: () => Routing } {
  const all = routeToAll(["chat"]);
  const timing = { ...DEFAULT_TIMING, groupWaitMs: 0, groupBy };
  return { routing: () => ({ ...all, root: { ...all.root, timing } }) };
}

const spike = (zoneId: number, ruleId: string, minutes = 0, windowCount = 50) =>
  insertSpike(database.db, { openedAt: at(minutes), zoneId, ruleId, windowCount });

const sent = async () =>
  (await world.messages()).map(({ message }) => {
    const members = message.members?.map(({ zoneId, ruleId }) => `${zoneId} ${ruleId}`).sort();
    return `${message.reason} ${members?.join(", ") ?? `${message.zoneId} ${message.ruleId}`}`;
  });

test("grouped by rule, one rule in many zones is one message, and other rules have their own", async () => {
  for (const zone of [101, 102, 103, 104, 105]) await spike(zone, "942100");
  await spike(101, "931130");
  await world.runAt(1, groupedBy("rule"));
  const members = "101 942100, 102 942100, 103 942100, 104 942100, 105 942100";
  expect((await sent()).sort()).toEqual([`first ${members}`, "first 101 931130"].sort());
  expect(new Set((await world.messages()).map(({ message }) => message.zoneId))).toEqual(
    new Set([101, null]),
  );
});

test("grouped by no label, all alerts at once are one message", async () => {
  for (const zone of [101, 102]) for (const rule of ["942100", "931130", "920100"]) await spike(zone, rule);
  await world.runAt(1, groupedBy());
  expect(await sent()).toEqual([
    "first 101 920100, 101 931130, 101 942100, 102 920100, 102 931130, 102 942100",
  ]);
  await database.db.update(spikes).set({ closedAt: at(20) });
  await world.runAt(21, groupedBy());
  expect((await sent()).map((line) => line.split(" ")[0])).toEqual(["first", "resolved"]);
});

test("grouped by zone and rule, every alert has its own message", async () => {
  for (const rule of ["1", "2", "3", "4", "5", "6"]) await spike(101, rule);
  await world.runAt(1, groupedBy("zone", "rule"));
  expect(await sent()).toHaveLength(6);
});

test("the largest are named first", async () => {
  for (const [index, rule] of ["10", "20", "30", "40", "50"].entries())
    await spike(101, rule, 0, 50 + index * 10);
  await world.runAt(1, groupedBy("zone"));
  const [message] = await world.messages();
  expect(message?.message.members?.map(({ ruleId }) => ruleId)).toEqual(["50", "40", "30", "20", "10"]);
  expect(message?.message.headline).toContain("50 (90), 40 (80), 30 (70) and 2 more");
});

test("a group that grows under a silence of its zone notifies once after the silence, of all members", async () => {
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  await world.runAt(1, groupedBy("zone"));
  await world.silence({ zone: [101] }, 60);
  for (const rule of ["6", "7"]) await spike(101, rule, 2);
  for (const minutes of [3, 10, 30, 59]) await world.runAt(minutes, groupedBy("zone"));
  expect(await sent()).toEqual(["first 101 1, 101 2, 101 3, 101 4, 101 5"]);
  await world.runAt(60, groupedBy("zone"));
  await world.runAt(61, groupedBy("zone"));
  expect((await sent()).slice(1)).toEqual(["worse 101 1, 101 2, 101 3, 101 4, 101 5, 101 6, 101 7"]);
});

test("a group that begins under a silence notifies by rule after the silence if it is still open", async () => {
  await world.silence({ zone: [101] }, 30);
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  for (const minutes of [1, 10]) await world.runAt(minutes, groupedBy("zone"));
  expect(await sent()).toEqual([]);
  await database.db.delete(silences);
  await world.runAt(31, groupedBy("zone"));
  await world.runAt(32, groupedBy("zone"));
  const named = (await sent()).flatMap((line) => line.match(/101 \d/g) ?? []);
  expect(named.sort()).toEqual(["101 1", "101 2", "101 3", "101 4", "101 5"]);
});

test("the command that a page names lists exactly the flood's rules", async () => {
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  for (const minutes of [0]) await spike(102, "1", minutes);
  await world.runAt(1, groupedBy("zone"));
  const group = (await world.messages()).find(({ message }) => message.members !== undefined)?.message;
  expect(group?.howToList).toBe(`longwatch alerts list --group ${group?.alertId}`);
  const args = group?.howToList?.split("longwatch alerts ")[1]?.split(" ") ?? [];
  const list = async (...more: string[]) => {
    const env = { DATABASE_URL: database.url };
    const { out } = await runStoreCommand(alertsCommand, env, [...args, "--json", ...more], { now: NOW });
    const { items } = JSON.parse(out) as { items: { ruleId: string; zoneId: number }[] };
    return items.map(({ zoneId, ruleId }) => `${zoneId} ${ruleId}`).sort();
  };
  const members = ["101 1", "101 2", "101 3", "101 4", "101 5"];
  expect(await list()).toEqual(members);
  await database.db
    .update(spikes)
    .set({ closedAt: at(20) })
    .where(eq(spikes.zoneId, 101));
  await world.runAt(21, groupedBy("zone"));
  expect(await list()).toEqual([]);
  expect(await list("--state", "all")).toEqual(members);
});

test("a flood's page says how to silence its zone, and its number means the same", async () => {
  for (const rule of ["942100", "931130", "920100", "930100", "941100"]) await spike(101, rule);
  await world.runAt(1, groupedBy("zone"));
  const [page] = await world.messages();
  expect(page?.message.howToSilence).toContain("silences add --zone 101 --for 30m ");
  expect(describeSubject(page?.message as AlertMessage)).toBe("zone 101 · flood");
  const args = ["add", "--alert", String(page?.message.alertId), "--for", "30m", "--reason", "known"];
  const added = await runStoreCommand(silencesCommand, { DATABASE_URL: database.url }, args, { now: NOW });
  expect(added).toMatchObject({ code: 0, err: "" });
  const stored = await database.db.select().from(silences);
  expect(stored.map(({ matchers }) => matchers)).toEqual([{ zone: [101] }]);
});

test("a flood of several zones is silenced by their names alone", async () => {
  for (const zone of [101, 102, 103, 104, 105]) await spike(zone, "942100");
  await world.runAt(1, groupedBy("rule"));
  const [page] = await world.messages();
  expect(page?.message.howToSilence).toBeNull();
  const args = ["add", "--alert", String(page?.message.alertId), "--for", "30m", "--reason", "known"];
  expect(
    await runStoreCommand(silencesCommand, { DATABASE_URL: database.url }, args, { now: NOW }),
  ).toMatchObject({
    code: 2,
    err: expect.stringContaining("is about rules in several zones. Name the zones"),
  });
});

test("a group does not notify of an alert that another job has notified of while this one waited for its rows", async () => {
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  await world.runAt(1, groupedBy("zone", "rule"));
  const holder = await database.pool.connect();
  try {
    await holder.query("create temp table raised as select * from alerts");
    await holder.query("delete from alerts");
    await holder.query("begin; select from spikes for update");
    const running = world.runAt(1, groupedBy("zone"));
    await vi.waitFor(async () => {
      const { rowCount } = await database.pool.query(
        "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
      );
      expect(rowCount).toBe(1);
    });
    await holder.query("insert into alerts overriding system value select * from raised; commit");
    await running;
  } finally {
    holder.release(true);
  }
  expect(await sent()).toEqual([]);
  expect(new Set((await world.alerts()).map(({ ruleId }) => ruleId))).toEqual(
    new Set(["1", "2", "3", "4", "5"]),
  );
  expect(await world.alerts()).toHaveLength(5);
});

test("a flood is as grave as its gravest rule", async () => {
  for (const [index, severity] of (["warning", "critical", "warning", "error", "warning"] as const).entries())
    await insertSpike(database.db, { openedAt: at(0), ruleId: String(index), severity });
  await world.runAt(1, groupedBy("zone"));
  expect((await world.messages()).map(({ message }) => message.severity)).toEqual(["critical"]);
});

test("a group whose rules were all deleted is resolved once, under its old name", async () => {
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  await world.runAt(1, groupedBy("zone"));
  await database.db.delete(spikes);
  for (const minutes of [2, 3]) await world.runAt(minutes, groupedBy("zone"));
  const said = (await world.messages()).map(({ message }) => message);
  expect(said).toMatchObject([
    { reason: "first", state: "firing" },
    { reason: "resolved", state: "resolved", headline: "Flood over", endedAt: at(2).getTime() },
  ]);
  expect(new Set(said.map(({ dedupeKey }) => dedupeKey)).size).toBe(1);
});

test("a channel in quiet hours is notified of a group after them, the other channels at once", async () => {
  const fromMinute = 15 * 60;
  const quiet = {
    timeZone: "UTC",
    days: WEEKDAYS,
    fromMinute,
    toMinute: fromMinute + 60,
    matchers: {},
  } as const;
  const given = groupedBy("zone");
  const routing = (): Routing => {
    const all = given.routing();
    const quietHours = [{ ...quiet, channels: ["pager"], critical: "hold" as const }];
    return {
      ...all,
      channels: ["chat", "pager"],
      root: { ...all.root, channels: ["chat", "pager"] },
      quietHours,
    };
  };
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  for (const minutes of [1, 29]) await world.runAt(minutes, { routing });
  expect(await world.outbox()).toEqual(["1 first chat"]);
  for (const minutes of [30, 31]) await world.runAt(minutes, { routing });
  expect(await world.outbox()).toEqual(["1 first chat", "2 first pager"]);
});

const BY_SEVERITY = (): { routing: () => Routing } => {
  const all = routeToAll(["chat", "pager"]);
  const timing = { ...DEFAULT_TIMING, groupWaitMs: 0 };
  const grave = { ...all.root, matchers: { severity: ["critical" as const] }, timing };
  return { routing: () => ({ ...all, root: { ...all.root, channels: ["chat"], timing, routes: [grave] } }) };
};

test("a group member that becomes critical is notified once by its group, also to the channels of another route", async () => {
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  await world.runAt(1, BY_SEVERITY());
  await database.db.update(spikes).set({ severity: "critical" }).where(eq(spikes.ruleId, "3"));
  for (const minutes of [2, 3, 8]) await world.runAt(minutes, BY_SEVERITY());
  const heard = (await world.messages()).map(
    ({ channel, message }) =>
      `${channel} ${message.reason} ${message.severity} ${message.members?.length ?? 1}`,
  );
  expect(heard.sort()).toEqual(["chat first warning 5", "chat worse critical 5", "pager first critical 5"]);
  await database.db.update(spikes).set({ closedAt: at(20) });
  await world.runAt(21, BY_SEVERITY());
  expect((await world.outbox()).slice(3).sort()).toEqual(["3 resolved chat", "3 resolved pager"]);
});

test("after a person resolves a group, no member notifies on its own, and a new spike does", async () => {
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  await world.runAt(1, groupedBy("zone"));
  const group = (await world.alerts()).find(({ ruleId }) => ruleId === null);
  const act = { alertId: group?.id ?? 0, by: "alice", note: "a known scan", atMs: at(5).getTime() };
  expect(await resolveAlert(database, act)).toMatchObject({ result: "done", channels: ["chat"] });
  for (const minutes of [6, 60, 300]) await world.runAt(minutes, groupedBy("zone"));
  expect((await sent()).map((line) => line.split(" ")[0])).toEqual(["first", "resolved"]);
  const members = (await world.alerts()).filter(({ ruleId }) => ruleId !== null);
  expect(members.map(({ state }) => state)).toEqual(Array(5).fill("resolved"));
  expect(members[0]).toMatchObject({
    details: { message: { state: "resolved", headline: expect.stringContaining("alice (a known scan)") } },
    transitions: [{ reason: "first" }, { reason: "resolved", by: "alice" }],
  });
  await database.db.update(spikes).set({ closedAt: at(301) });
  await spike(101, "1", 400);
  await world.runAt(401, groupedBy("zone"));
  expect((await sent()).slice(2)).toEqual(["first 101 1"]);
});

test("new members of a group notify every channel, also when one channel is due for a reminder only", async () => {
  const all = routeToAll(["chat", "pager"]);
  const timing = { ...DEFAULT_TIMING, groupWaitMs: 0 };
  const often = {
    ...all.root,
    channels: ["pager"],
    timing: { ...timing, repeatIntervalMs: 3_600_000 },
    continue: true,
  };
  const routes = [often, { ...all.root, channels: ["chat"], timing }];
  const both = { routing: () => ({ ...all, root: { ...all.root, timing, routes } }) };
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  await world.runAt(1, both);
  await spike(101, "6", 60);
  for (const minutes of [61, 62, 67]) await world.runAt(minutes, both);
  const heard = (await world.messages())
    .slice(2)
    .map(({ channel, message }) => `${channel} ${message.reason} ${message.members?.length}`);
  expect(heard.sort()).toEqual(["chat worse 6", "pager worse 6"]);
});

test("a group whose stored message cannot be read does not stop the alerts of other rules", async () => {
  for (const rule of ["1", "2", "3", "4", "5"]) await spike(101, rule);
  await world.runAt(1, groupedBy("zone"));
  const unreadable = { details: { message: { members: 5 } } };
  await database.db.update(alerts).set(unreadable).where(eq(alerts.kind, "group"));
  await spike(102, "942100");
  await world.runAt(2, groupedBy("zone"));
  expect((await sent()).slice(1)).toEqual(["first 102 942100"]);
});
