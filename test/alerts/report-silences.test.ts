import { pino } from "pino";
import { expect, test } from "vitest";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { routeSelf } from "#alerts/rules/self-alert.ts";
import { endSilence, extendSilence } from "#alerts/silences/end-silence.ts";
import { silences } from "#db/schema/alerts.ts";
import { raiseExamined } from "#jobs/alerts/raise-self.ts";
import { examine, openScope } from "#jobs/health/conditions/condition.ts";
import { DELIVERY_CONDITIONS } from "#jobs/health/conditions/delivery.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { performOn } from "../operations/perform-on.ts";
import { at, openAlertWorld } from "./alert-world.ts";
import { NOW } from "./support.ts";

const { database, world } = await openAlertWorld();

/** A silence of alice from NOW on; returns its number. */
async function silence(minutes: number, matchers: object = { zone: [101] }): Promise<number> {
  const row = { startsAt: at(0), expiresAt: at(minutes), createdBy: "alice", reason: "load test", matchers };
  const [made] = await database.db.insert(silences).values(row).returning({ id: silences.id });
  return made?.id ?? 0;
}

async function reportAt(minutes: number): Promise<string[]> {
  const nowMs = NOW + minutes * MINUTE_MS;
  const context = { routing: routeToAll(["chat"]), silences: [], nowMs };
  const log = pino({ level: "silent" });
  const before = (await world.messages()).length;
  const conditions = DELIVERY_CONDITIONS.filter(({ of }) => of === "silence");
  const examined = await examine(openScope({ db: database.db, nowMs, zoneIds: [] }), conditions);
  await raiseExamined({ database, log, routeOf: (subject) => routeSelf(context, subject) }, examined);
  const sent = (await world.messages()).slice(before);
  return sent.map(({ reason, message }) => `${reason} ${message.severity}: ${message.headline}`);
}

test("the end of a silence is announced once if alerts that it mutes still fire, and once when it has ended", async () => {
  const id = await silence(120);
  await world.openSpike(1);
  await world.runAt(1);
  const [alert] = await world.alerts();
  expect(await world.outbox()).toEqual([]);

  expect(await reportAt(100)).toEqual([]);
  expect(await reportAt(106)).toEqual([
    `first info: Silence ${id} of alice (load test) ends in 14 min. 1 alert that it mutes will notify again: alert ${alert?.id}, SQL injection: rule 942100 in zone 101 is spiking, 50 events in 3 min, 25 times the usual 2`,
  ]);
  expect(await reportAt(107)).toEqual([]);
  expect(await reportAt(121)).toEqual([`resolved info: Silence ${id} of alice (load test) has ended`]);
  expect(await reportAt(122)).toEqual([]);
});

test("the end of a silence that mutes no firing alert is not announced", async () => {
  await silence(120);
  await world.openSpike(1, { zoneId: 102 });
  await world.runAt(1);
  expect(await reportAt(119)).toEqual([]);
});

test("a short silence is announced in its last quarter, and an extended one no longer ends soon", async () => {
  const id = await silence(20);
  await world.openSpike(1);
  await world.runAt(1);
  expect(await reportAt(14)).toEqual([]);
  expect(await reportAt(16)).toHaveLength(1);
  await performOn(database, extendSilence, { id, durationMinutes: 300 }, { by: "bob", now: NOW });
  expect(await reportAt(17)).toEqual([
    `resolved info: Silence ${id} of alice (load test) now ends 2026-11-20 20:30 UTC`,
  ]);
});

test("a critical alert that no channel was notified of is reported while it is hidden", async () => {
  const id = await silence(120);
  await world.openSpike(1, { severity: "critical" });
  await world.runAt(1);
  const [alert] = await world.alerts();
  expect(await reportAt(2)).toEqual([
    expect.stringMatching(
      new RegExp(
        `^first warning: Silence ${id} of alice \\(load test\\) hides 1 critical alert that no channel was notified of, until 2026-11-20 17:30 UTC: alert ${alert?.id}, SQL injection`,
      ),
    ),
  ]);
  expect(await reportAt(3)).toEqual([]);
  await performOn(database, endSilence, { id }, { by: "alice", now: NOW + 4 * MINUTE_MS });
  expect(await reportAt(5)).toEqual([
    `resolved warning: Silence ${id} of alice (load test) has ended, and it hides no critical alert any more`,
  ]);
});

test("a critical alert that was notified before its silence is not reported as hidden", async () => {
  await world.openSpike(0, { severity: "critical" });
  await world.runAt(0);
  await silence(120);
  await world.runAt(1);
  expect(await reportAt(2)).toEqual([]);
});

test("the first message after a silence says which silence muted the alert, and since when", async () => {
  const id = await silence(60);
  await world.openSpike(1);
  await world.runAt(1);
  await world.runAt(62);
  const [message] = await world.messages();
  expect(message?.message.details).toEqual([
    `silence ${id} muted this alert from 2026-11-20 15:31 UTC until now`,
  ]);
});
