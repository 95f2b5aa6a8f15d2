import { eq, sql } from "drizzle-orm";
import { expect, test } from "vitest";
import { DEFAULT_TIMING, type Routing, routeToAll } from "#alerts/rules/routing/routing.ts";
import { readOpenWork } from "#db/health/service-status.ts";
import { alerts, silences } from "#db/schema/alerts.ts";
import { notifications } from "#db/schema/notifications.ts";
import { spikes } from "#db/schema/spikes.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { StoredAttacker } from "#model/stored-sources.ts";
import { acknowledgeByHand, resolveAlert } from "../operations/act-by-hand.ts";
import { at, openAlertWorld } from "./alert-world.ts";
import { attackerOf, incidentOf, sourcesOf } from "./incident.ts";
import { EVERYDAY } from "./support.ts";

const { database, world } = await openAlertWorld();

const routing = (): Routing => {
  const all = routeToAll(["chat"]);
  return { ...all, root: { ...all.root, timing: { ...DEFAULT_TIMING, groupWaitMs: 0 } } };
};
const run = (...minutes: number[]) =>
  minutes.reduce((before, one) => before.then(() => world.runAt(one, { routing })), Promise.resolve());
const attack = (minutes: number, ...attackers: StoredAttacker[]) =>
  world.openSpike(minutes, incidentOf(...attackers));

/** Stores the incident as it was judged at a minute. Every attacker that is given was over its line in it. */
async function judge(id: number, minutes: number, ...attackers: StoredAttacker[]): Promise<void> {
  const sources = sourcesOf(attackers);
  await database.db
    .update(spikes)
    .set({ sources, judgedThrough: at(minutes), lastActiveAt: at(minutes) })
    .where(eq(spikes.id, id));
}

/** `first 203.0.113.1+203.0.113.2 | 942100`: the reason, the active attackers or the rule, and the members. */
const sent = async () =>
  (await world.messages()).map(({ message: { reason, ruleId, attackers, members = [] } }) => {
    const active = attackers
      ?.filter(({ isActive }) => isActive)
      .map(({ key }) => key.replace("203.0.113", ""));
    const rules = members.map((member) => member.ruleId).sort();
    return `${reason} ${active?.join("+") ?? ruleId}${rules.length > 0 ? ` | ${rules.join()}` : ""}`;
  });

const ONE = attackerOf("203.0.113.1", 0, { lastMinutes: 300 });
const joining = (n: number, minutes: number) =>
  attackerOf(`203.0.113.${n}`, minutes, { role: "joined", lastMinutes: 300 });

test("a rule that is part of an incident is listed and does not notify, not even when it ends or gets worse", async () => {
  const memberOf = await attack(0, ONE);
  const rule = await world.openSpike(0, { memberOf });
  await run(1);
  await database.db.update(spikes).set({ severity: "critical" }).where(eq(spikes.id, rule));
  await run(2, 300);
  await world.closeSpike(rule, 301);
  await run(302);
  expect((await sent()).filter((line) => line.includes("942100") && !line.includes("|"))).toEqual([]);
  // The gravest member counts for the incident.
  expect(await sent()).toEqual(["first .1 | 942100", "worse .1 | 942100"]);
  const own = (await world.alerts()).find(({ ruleId }) => ruleId === "942100");
  expect(own).toMatchObject({
    state: "resolved",
    transitions: expect.arrayContaining([expect.objectContaining({ reason: "first", mutedBy: "incident" })]),
  });
});

test("the alerts of an incident's members are written with one statement, once, also by two runs at the same time", async () => {
  const memberOf = await attack(0, ONE);
  for (let i = 0; i < 60; i += 1) await world.openSpike(0, { ruleId: `94${i}`, memberOf });
  await database.pool.query(`
    create table alert_inserts (at timestamptz default clock_timestamp());
    create function note_insert() returns trigger language plpgsql as
      'begin insert into alert_inserts default values; return null; end';
    create trigger note_insert after insert on alerts for each statement execute function note_insert()`);
  await run(1);
  // That of the incident, and that of its members.
  expect((await database.pool.query("select from alert_inserts")).rowCount).toBe(2);
  const before = await world.alerts();
  expect(before).toHaveLength(61);
  const members = before.filter(({ kind }) => kind === "spike");
  for (const { id, ruleId, fingerprint, details } of members)
    expect((details as { message: AlertMessage }).message).toMatchObject({
      alertId: id,
      fingerprint,
      ruleId,
      reason: "first",
      state: "firing",
      advice: { state: "pending" },
    });
  await run(2);
  expect(await world.alerts()).toEqual(before);
  await database.db.delete(alerts);
  await Promise.all([run(1), run(1)]);
  expect((await world.alerts()).map(({ fingerprint }) => fingerprint).sort()).toEqual(
    before.map(({ fingerprint }) => fingerprint).sort(),
  );
  expect(await sent()).toHaveLength(1);
});

test("an alert that cannot be written does not stop the other members of its incident", async () => {
  const memberOf = await attack(0, ONE);
  for (let i = 0; i < 5; i += 1) await world.openSpike(0, { ruleId: `94${i}`, memberOf });
  await database.pool.query(`alter table alerts add constraint no_943 check (rule_id <> '943')`);
  try {
    await expect(run(1)).rejects.toMatchObject({ cause: { constraint: "no_943" } });
  } finally {
    await database.pool.query("alter table alerts drop constraint no_943");
  }
  const rules = (await world.alerts()).map(({ ruleId }) => ruleId);
  expect(new Set(rules)).toEqual(new Set(["(sources)", "940", "941", "942", "944"]));
});

test("an incident goes on with the alert of a rule that was notified, under its key, and ends it once", async () => {
  const rule = await world.openSpike(0);
  await run(1);
  const memberOf = await attack(3, ONE);
  await database.db.update(spikes).set({ memberOf, severity: "critical" }).where(eq(spikes.id, rule));
  await run(4, 20, 280);
  expect(await sent()).toEqual(["first 942100", "worse .1 | 942100", "repeat .1 | 942100"]);
  await world.closeSpike(rule, 281);
  await run(282);
  expect((await sent()).slice(3)).toEqual([]);
  await world.closeSpike(memberOf, 290);
  await run(291, 292);
  expect((await sent()).slice(3)).toEqual(["resolved  | 942100"]);
  expect(await world.alerts()).toMatchObject([{ state: "resolved", spikeId: memberOf }]);
  expect(new Set((await world.messages()).map(({ message }) => message.dedupeKey)).size).toBe(1);
});

test("a rule that spikes again after an incident has ended its alert notifies again", async () => {
  const rule = await world.openSpike(0);
  await run(1);
  const memberOf = await attack(3, ONE);
  await database.db.update(spikes).set({ memberOf }).where(eq(spikes.id, rule));
  await run(10);
  await world.closeSpike(rule, 30);
  await world.closeSpike(memberOf, 31);
  await run(32);
  const wave = await world.openSpike(50);
  await run(51, 52);
  await world.closeSpike(wave, 60);
  await run(100);
  await world.openSpike(300);
  await run(301);
  expect((await sent()).map((line) => line.split(" ")[0])).toEqual([
    "first",
    "worse",
    "resolved",
    "again",
    "resolved",
    "first",
  ]);
});

test("an acknowledged alert stays acknowledged when an incident takes it over", async () => {
  const rule = await world.openSpike(0);
  await run(1);
  const [alert] = await world.alerts();
  await acknowledgeByHand(database, {
    alertId: alert?.id ?? 0,
    by: "alice",
    note: null,
    atMs: at(2).getTime(),
  });
  const memberOf = await attack(3, ONE);
  await database.db.update(spikes).set({ memberOf }).where(eq(spikes.id, rule));
  await run(4, 10);
  expect(await world.alerts()).toMatchObject([{ state: "acknowledged", spikeId: memberOf }]);
  expect(await sent()).toEqual(["first 942100", "acknowledged 942100", "worse .1 | 942100"]);
});

test("attackers that join are named at most once in the join interval, which doubles from the fourth message on", async () => {
  const id = await attack(0, ONE);
  const all = [ONE];
  const told: number[] = [];
  for (let minute = 1; minute <= 42; minute += 1) {
    // A flood: another address every minute.
    all.push(joining(minute + 1, minute));
    await judge(id, minute, ...all);
    const before = await database.db.$count(notifications);
    await run(minute);
    if ((await database.db.$count(notifications)) > before) told.push(minute);
  }
  expect(told).toEqual([1, 6, 11, 21, 41]);
  const reasons = (await world.messages()).map(({ reason }) => reason);
  expect(reasons).toEqual(["first", "join", "join", "join", "join"]);
  expect((await world.messages()).at(-1)?.message.headline).toMatch(
    /^42 attackers in zone 101: 203\.0\.113\.42, 203\.0\.113\.41, 203\.0\.113\.40 and 39 more attack now$/,
  );
}, 60_000);

test("a silence of one address does not mute the incident of another, and the silenced one's join is no news", async () => {
  await world.silence({ ip: ["203.0.113.2"] }, 30);
  const id = await attack(0, ONE);
  await run(1);
  await judge(id, 7, ONE, joining(2, 7));
  await run(8, 20);
  expect(await sent()).toEqual(["first .1"]);
  // Another one is news, and its message names every attacker.
  await judge(id, 21, ONE, joining(2, 7), joining(3, 21));
  await run(22);
  expect((await sent()).slice(1)).toEqual(["join .3+.2+.1"]);
});

test("an attacker that joined under a silence of its own is named once the silence is over", async () => {
  await world.silence({ ip: ["203.0.113.2"] }, 30);
  const id = await attack(0, ONE);
  await run(1);
  await judge(id, 7, ONE, joining(2, 7));
  await run(8, 29);
  expect(await sent()).toEqual(["first .1"]);
  await run(31, 32);
  expect((await sent()).slice(1)).toEqual(["join .2+.1"]);
});

test("attackers that joined while the whole zone was silenced are named together after the silence", async () => {
  const id = await attack(0, ONE);
  await run(1);
  await world.silence({ zone: [101] }, 60);
  await judge(id, 20, ONE, joining(2, 10), joining(3, 20));
  await run(21, 59);
  expect(await sent()).toEqual(["first .1"]);
  await database.db.delete(silences);
  await run(61, 62);
  expect((await sent()).slice(1)).toEqual(["join .3+.2+.1"]);
});

test("a silenced incident is listed with the attackers of now, so that its silences can be judged", async () => {
  await world.silence({ zone: [101] }, 60);
  const id = await attack(0, ONE);
  await run(1);
  await judge(id, 5, ONE, joining(2, 5));
  await run(6);
  expect(await world.alerts()).toMatchObject([
    { details: { message: { attackers: [{ key: "203.0.113.2" }, { key: "203.0.113.1" }] } } },
  ]);
  expect(await sent()).toEqual([]);
});

test("a rule from fewer than three addresses is listed, and notifies once it has three", async () => {
  const id = await world.openSpike(0, { addresses: 9, mainSenders: 2, gradedBy: "score" });
  await run(1, 20);
  expect(await sent()).toEqual([]);
  expect(await world.alerts()).toMatchObject([
    { state: "firing", transitions: [{ mutedBy: "few-addresses" }] },
  ]);
  await database.db.update(spikes).set({ mainSenders: 3 }).where(eq(spikes.id, id));
  await run(21, 22, 40);
  expect(await sent()).toEqual(["first 942100"]);
});

test.each([
  ["one address, but critical", { addresses: 1, mainSenders: 1, severity: "critical" as const }, 3, 1],
  ["an unknown number of addresses", { addresses: null, mainSenders: null }, 3, 1],
  ["one address, where one is enough", { addresses: 1, mainSenders: 1, gradedBy: "score" as const }, 1, 1],
  ["eleven addresses, where twelve are needed", { addresses: 11, mainSenders: 11 }, 12, 0],
  ["two main senders of nine", { addresses: 9, mainSenders: 2, gradedBy: "score" as const }, 3, 0],
  [
    "two main senders and a critical score",
    { addresses: 9, mainSenders: 2, gradedBy: "addresses" as const },
    3,
    1,
  ],
])("a rule with %s", async (_what, over, fewAddresses, messages) => {
  await world.openSpike(0, over);
  await world.runAt(1, { routing: () => ({ ...routing(), fewAddresses }) });
  expect(await sent()).toHaveLength(messages);
});

test("a rule that still spikes after its incident ended is ended with it, and its next spike notifies by itself", async () => {
  const memberOf = await attack(0, ONE);
  const rule = await world.openSpike(0, { memberOf });
  await run(1);
  await world.closeSpike(memberOf, 40);
  await run(41, 69, 71, 200);
  expect(await sent()).toEqual(["first .1 | 942100", "resolved  | 942100"]);
  expect((await world.alerts()).map(({ state }) => state)).toEqual(["resolved", "resolved"]);
  await world.closeSpike(rule, 200);
  await world.openSpike(210);
  await run(211);
  expect((await sent()).slice(2)).toEqual(["first 942100"]);
});

test("the open work of a zone counts an incident once, and no member of it, not even after its end", async () => {
  const memberOf = await attack(0, ONE);
  for (const ruleId of ["1", "2", "3"]) await world.openSpike(0, { ruleId, memberOf });
  await run(1);
  const firing = async () => (await readOpenWork(database.db, [101])).map(({ alertsFiring }) => alertsFiring);
  expect(await firing()).toEqual([1]);
  const ended = sql`now() - interval '31 minutes'`;
  await database.db.update(spikes).set({ openedAt: ended, closedAt: ended }).where(eq(spikes.id, memberOf));
  expect(await firing()).toEqual([1]);
  await database.db.update(spikes).set({ memberOf: null });
  expect(await firing()).toEqual([4]);
});

test("two incidents of one zone are two alerts, and each lists its own rules", async () => {
  const first = await attack(0, ONE);
  const second = await world.openSpike(0, { ...incidentOf(joining(9, 0)), incident: "1.2" });
  await world.openSpike(0, { ruleId: "1", memberOf: first });
  await world.openSpike(0, { ruleId: "2", memberOf: second });
  await run(1);
  expect((await sent()).sort()).toEqual(["first .1 | 1", "first .9 | 2"]);
});

test("ten concurrent runs notify once of an incident, of a join, and of its end", async () => {
  const memberOf = await attack(0, ONE);
  for (const ruleId of ["1", "2", "3"]) await world.openSpike(0, { ruleId, memberOf });
  const together = (minutes: number) => Promise.all(Array.from({ length: 10 }, () => run(minutes)));
  await together(1);
  await judge(memberOf, 7, ONE, joining(2, 7));
  await together(8);
  await database.db.update(spikes).set({ closedAt: at(40), windowCount: EVERYDAY });
  await together(41);
  expect(await sent()).toEqual(["first .1 | 1,2,3", "join .2+.1 | 1,2,3", "resolved  | 1,2,3"]);
  expect((await world.alerts()).map(({ state }) => state)).toEqual(Array(4).fill("resolved"));
});

test("an incident that a person has resolved fires again for an attacker that joins, not for those it had", async () => {
  const memberOf = await attack(0, ONE);
  await world.openSpike(0, { memberOf });
  await run(1);
  await judge(memberOf, 3, ONE, joining(2, 3));
  // The second address is listed, and no message has named it yet.
  await run(4);
  const incident = (await world.alerts()).find(({ kind }) => kind === "sources");
  const act = { alertId: incident?.id ?? 0, by: "alice", note: null, atMs: at(5).getTime() };
  expect(await resolveAlert(database, act)).toMatchObject({ state: "resolved", channels: ["chat"] });
  await run(6, 60);
  expect((await world.alerts()).map(({ state }) => state)).toEqual(["resolved", "resolved"]);
  expect((await sent()).map((line) => line.split(" ")[0])).toEqual(["first", "resolved"]);
  await judge(memberOf, 61, ONE, joining(2, 3), joining(3, 61));
  await run(62, 63);
  expect((await sent()).slice(2)).toEqual(["again .3+.2+.1 | 942100"]);
  expect((await world.messages()).at(-1)?.message).toMatchObject({ isAgain: true, state: "firing" });
});
