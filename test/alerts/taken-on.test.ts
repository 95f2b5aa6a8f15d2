import { pino } from "pino";
import { expect, test } from "vitest";
import { explainAlert } from "#alerts/rules/explain-alert.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { routeSelf, type SelfSubject } from "#alerts/rules/self-alert.ts";
import { spikes } from "#db/schema/spikes.ts";
import { raiseSelfAlert } from "#jobs/alerts/raise-self.ts";
import { WEEKDAYS } from "#model/kinds.ts";
import { acknowledgeByHand, resolveAlert } from "../operations/act-by-hand.ts";
import { at, openAlertWorld } from "./alert-world.ts";

const { database, world } = await openAlertWorld();

const act = async (minutes: number) => {
  const [alert] = await world.alerts();
  return { alertId: alert?.id ?? 0, by: "alice", note: null, atMs: at(minutes).getTime() };
};

test("an alert whose counts were brought up to date is acknowledged and resolved with its links", async () => {
  const links = [{ title: "Runbook", url: "https://wiki.example.com/{rule}", matchers: {} }];
  const routing = () => ({ ...routeToAll(["chat"]), links });
  await world.openSpike();
  await world.runAt(1, { routing });
  await database.db.update(spikes).set({ windowCount: 999_999, peak: 999_999 });
  await world.runAt(2, { routing });
  await acknowledgeByHand(database, await act(3));
  await resolveAlert(database, await act(4));
  const sent = (await world.messages()).map(({ message }) => `${message.reason} ${message.links.length}`);
  expect(sent).toEqual(["first 1", "acknowledged 1", "resolved 1"]);
});

test("alerts, groups and alerts about Longwatch itself have the current name and labels of their zone", async () => {
  let name = "shop";
  const routing = () => ({ ...routeToAll(["chat"]), zones: { 101: { name, labels: { team: "edge" } } } });
  await world.openSpike();
  await world.runAt(1, { routing });
  name = "store";
  await database.db.update(spikes).set({ severity: "critical" });
  await world.runAt(9, { routing });
  await resolveAlert(database, await act(10));
  const sent = (await world.messages()).map(({ message }) => message);
  expect(sent.map(({ zoneName, zoneLabels }) => [zoneName, zoneLabels])).toEqual([
    ["shop", { team: "edge" }],
    ["store", { team: "edge" }],
    ["store", { team: "edge" }],
  ]);
  expect(sent[0]?.headline).toContain("rule 942100 in zone 101 (shop)");
  expect(sent.at(-1)?.headline).toContain("rule 942100 in zone 101 (store)");
  const log = pino({ level: "silent" });
  const given = { routing: routing(), silences: [], nowMs: at(11).getTime() };
  const news = {
    reason: "first",
    severity: "error",
    headline: "Zone 101: late",
    openedAtMs: given.nowMs,
  } as const;
  const reporter = { database, log, routeOf: (subject: SelfSubject) => routeSelf(given, subject) };
  const telling = { about: "x", fingerprint: "x", zoneId: 101, row: null, news, nowMs: given.nowMs };
  expect(await raiseSelfAlert(reporter, telling)).toBe(true);
  const self = (await world.messages()).at(-1)?.message;
  expect(self).toMatchObject({ headline: "Zone 101 (store): late", zoneName: "store" });
});

test("explainAlert names the channels that raise-alerts notifies", async () => {
  const root = { ...routeToAll(["chat"]).root };
  const route = (matchers: object, channels: string[], goesOn = false) => ({
    ...root,
    matchers,
    channels,
    continue: goesOn,
  });
  const routes = [
    route({ severity: ["critical"] }, ["pager"], true),
    route({ zone: [102] }, ["desk", "chat"]),
    route({ rule: ["94*"] }, ["desk"], true),
    route({ kind: ["new-rule"] }, ["night"]),
  ];
  const hours = { timeZone: "UTC", days: WEEKDAYS, fromMinute: 0, toMinute: 1439, channels: ["desk"] };
  const quietHours = [{ ...hours, matchers: { rule: ["941*"] }, critical: "tell" as const }];
  const routing = {
    ...routeToAll(["chat", "pager", "desk", "night"]),
    root: { ...root, routes },
    quietHours,
  };
  const severities = ["warning", "error", "critical"] as const;
  const subjects = [101, 102].flatMap((zoneId) =>
    ["942100", "941100", "1"].flatMap((ruleId) =>
      severities.map((severity) => ({ zoneId, ruleId, severity, kind: "spike" as const })),
    ),
  );
  for (const subject of subjects) {
    await world.clear();
    await world.openSpike(0, subject);
    await world.runAt(1, { routing: () => routing, zoneIds: [101, 102] });
    const given = {
      nowMs: at(1).getTime(),
      routing,
      asks: [],
      silences: [],
      firing: [],
      incidents: new Set<number>(),
    };
    const [first] = explainAlert(subject, given).transitions;
    const [alert] = await world.alerts();
    expect(alert?.transitions).toMatchObject([
      { reason: "first", channels: first?.notified, held: first?.held },
    ]);
  }
});

test("a waiting rise does not notify after a person acknowledges the alert; a later one does", async () => {
  await world.openSpike();
  await world.runAt(1, { channels: ["chat"] });
  await database.db.update(spikes).set({ severity: "error" });
  await world.runAt(2, { channels: ["chat"] });
  await acknowledgeByHand(database, await act(3));
  await world.runAt(7, { channels: ["chat"] });
  expect(await world.outbox()).toEqual(["1 first chat", "3 acknowledged chat"]);
  await database.db.update(spikes).set({ severity: "critical" });
  await world.runAt(8, { channels: ["chat"] });
  expect(await world.outbox()).toEqual(["1 first chat", "3 acknowledged chat", "4 worse chat"]);
});
