import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import { addKeys } from "../bench/sources/add-keys.ts";
import { drawZone } from "../bench/sources/draw-zone.ts";
import { readAlerts } from "../bench/sources/read-alerts.ts";
import { createMessageScore } from "../bench/sources/score-messages.ts";
import { type DrawnEvent, type DrawnZone, OVERLAP_KINDS } from "../bench/sources/zone.ts";

/** Two scanners that overlap from minute 1,000 and 1,005 on, five events a minute each, and one visitor a minute. */
const zone = ((): DrawnZone => {
  const event = (minute: number, ip: string, attack: number | null): DrawnEvent => {
    const [ruleId, ja4] = [`r${minute % 7}`, attack === null ? "common" : `tool${attack}`];
    return { minute, ip, attack, ruleId, ja4, ua: "ua", url: "/", asn: "AS1" };
  };
  const events = Array.from({ length: 200 }, (_, i) => event(900 + i, `visitor${i}`, null));
  for (const [attack, from] of [1_000, 1_005].entries())
    for (let i = 0; i < 100; i += 1)
      events.push(event(from + Math.floor(i / 5), `10.0.0.${attack + 1}`, attack));
  events.sort((a, b) => a.minute - b.minute);
  const attacks = [1_000, 1_005].map((from) => ({ kind: "x" as const, from, to: from + 20 }));
  return { events, nuisances: [], attacks: addKeys(attacks, events) };
})();

function message(at: number, incident: number, ips: readonly string[], more = {}): ReplayedMessage {
  const attackers = ips.map((key) => ({ kind: "rules_per_ip" as const, key }));
  const usual = { reason: "first", severity: "error", subject: "incident", rules: [] } as const;
  return { at, incident, attackers, ...usual, ...more };
}

function score(messages: readonly ReplayedMessage[]) {
  const scored = createMessageScore();
  scored.add(zone, messages);
  const read = scored.read();
  return { ...read, overlapping: read.of(["x", "y", "s"]) };
}

test("the truth of an attack is its address, fingerprint, agent, network and path", () => {
  expect(zone.attacks[1]?.keys.map(({ key }) => key)).toEqual(["10.0.0.2", "tool1", "/", "ua", "AS1"]);
});

test("one alert that names one of two scanners names half of them", () => {
  const { overlapping, f1, falseSources } = score([message(1_004, 0, ["10.0.0.1"])]);
  expect(overlapping).toMatchObject({ attacks: 2, namedWithin10: 0.5, alertsPerAttack: 0.5, notified: 0.5 });
  expect([f1, falseSources]).toEqual([2 / 3, 0]);
});

test("a join names the second scanner, counts as no alert, and is no page by start", () => {
  const found = score([
    message(1_004, 0, ["10.0.0.1"]),
    message(1_017, 0, ["10.0.0.2"], { reason: "join" }),
    message(1_060, 0, ["10.0.0.1"], { reason: "resolved" }),
  ]);
  expect(found.overlapping).toMatchObject({ namedWithin10: 0.5, namedWithin30: 1, messagesPerAttack: 1 });
  expect(found.overlapping.alertsPerAttack).toBe(0.5);
  expect([found.f1, found.f1WithJoins]).toEqual([2 / 3, 1]);
});

test("a key that mostly has other events, or few events of the attack, names nothing", () => {
  const common = [{ kind: "ips_per_ua", key: "ua" }];
  expect(score([message(1_020, 0, [], { attackers: common })]).overlapping.namedWithin30).toBe(0);
  expect(score([message(1_010, 0, ["10.0.0.9"])]).overlapping.namedWithin30).toBe(0);
});

test("alerts outside every attack are false, and pages only if they are error or critical", () => {
  const rule = { subject: "rule", rules: ["r1"], severity: "warning", attackers: [] };
  const found = score([message(950, 0, []), message(1_090, 1, [], rule), message(1_010, 2, [], rule)]);
  const perZoneDay = [found.falseSources, found.falsePages, found.falseNotifications].map((n) => n * 9);
  expect(perZoneDay).toEqual([1, 1, 2]);
});

test("alerts of a file are read with their zones, incidents and encoded keys", () => {
  const folder = mkdtempSync(path.join(tmpdir(), "alerts-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, "alerts.csv");
  writeFileSync(
    file,
    `zone,at,incident,reason,severity,subject,attackers,rules
3,60240,10.0.0.1,first,error,incident,rules_per_ip=10.0.0.1 ips_per_ua=a%20%22b%22%2C=c,r1 r2
3,60300,10.0.0.1,join,critical,incident,rules_per_ip=10.0.0.2,
4,60300,r7,first,warning,rule,,r7
`,
  );
  const zones = readAlerts(file);
  expect(zones.get("3")).toEqual([
    {
      ...message(1_004, 0, ["10.0.0.1"]),
      attackers: [
        { kind: "rules_per_ip", key: "10.0.0.1" },
        { kind: "ips_per_ua", key: 'a "b",=c' },
      ],
      rules: ["r1", "r2"],
    },
    message(1_005, 0, ["10.0.0.2"], { reason: "join", severity: "critical" }),
  ]);
  expect(zones.get("4")).toMatchObject([{ incident: 1, subject: "rule", attackers: [], rules: ["r7"] }]);
});

test("a zone with attacks that overlap has every kind of them, and is otherwise the plain zone", () => {
  const [plain, overlap] = [drawZone(5, 3), drawZone(5, 3, { isOverlap: true })];
  const first = plain.attacks.length;
  expect(overlap.attacks.slice(0, first)).toEqual(plain.attacks);
  expect(new Set(overlap.attacks.slice(first).map(({ kind }) => kind))).toEqual(new Set(OVERLAP_KINDS));
  expect(overlap.events.filter(({ attack }) => attack === null || attack < first)).toEqual(plain.events);
});
