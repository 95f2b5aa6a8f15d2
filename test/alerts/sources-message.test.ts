import { expect, test } from "vitest";
import type { AlertRecord } from "#alerts/rules/alert-record.ts";
import { toAlertSpike } from "#alerts/rules/alert-spike.ts";
import { createAssessor } from "#alerts/rules/assess.ts";
import { buildMessage } from "#alerts/rules/message/build-message.ts";
import { describeIncident } from "#alerts/rules/message/describe-incident.ts";
import { headlineOf } from "#alerts/rules/message/headline.ts";
import { routeToAll } from "#alerts/rules/routing/routing.ts";
import { findSilence } from "#alerts/rules/silence.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { fingerprintOf } from "#model/fingerprint.ts";
import { SOURCES_RULE, type StoredAttacker } from "#model/stored-sources.ts";
import { matchesSubject } from "#model/subject.ts";
import { attackerOf, sourcesOf } from "./incident.ts";
import { alertSpike, EVIDENCE, NOW, play } from "./support.ts";

const SOURCES = sourcesOf(
  [
    attackerOf("2001:db8:1:2::/64", 0, { usualMembers: 3, count: 38 }),
    attackerOf("t13d1516h2_8daaf6152771", 2, { kind: "ips_per_ja4", role: "facet", members: 20, score: 4 }),
  ],
  {
    grown: [
      { dimension: "asn", value: "AS64500", now: 187, before: 0 },
      { dimension: "rule", value: "942100", now: 96, before: 11 },
    ],
    rules: [{ value: "941100", count: 9 }],
    events: 187,
    isMasked: true,
  },
);
const stored = {
  ...alertSpike({ kind: "sources", ruleId: SOURCES_RULE }),
  severity: "error" as const,
  openedAt: new Date(NOW),
  closedAt: null,
  sources: SOURCES,
  evidence: {
    ...EVIDENCE,
    top: { ...EVIDENCE.top, asn: [{ value: "AS64500 Example", count: 9, share: 0.9 }] },
  },
};
const spike = toAlertSpike(stored);

test("a message of sources says who, what, against what, and what grew most", () => {
  const alerts: AlertRecord[] = [];
  const reason = play(alerts, { spike, nowMs: NOW }).at(-1) ?? "first";
  const message = buildMessage({
    alertId: 7,
    fingerprint: fingerprintOf(spike),
    alert: alerts.at(-1) as AlertRecord,
    reason,
    spike,
    advice: { state: "pending", text: null, reason: null },
  });
  expect(message.headline).toBe(
    "Many rules from one address in zone 101: 2001:db8:1:2::/64 triggered 41 different rules in 15 min; usually at most 4 at this hour, the threshold is 17",
  );
  expect(message.details).toEqual([
    "the same events: JA4 t13d1516h2_8daaf6152771 came from 20 addresses in 15 min; usually at most 4 at this hour, the threshold is 17",
    "187 events of these attackers in 15 min, mostly rules 941100",
    "3 of them are usual for 2001:db8:1:2::/64 and are not counted",
    "grew most in all of the zone, 15 min against yesterday: network AS64500 (0 to 187 events), rule 942100 (11 to 96 events)",
    "some addresses are masked; each masked address counts as one",
  ]);
  expect(JSON.stringify(message)).not.toMatch(/botnet/i);
});

test("a message of sources that are quiet for now says so", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike, nowMs: NOW });
  const alert = alerts.at(-1) as AlertRecord;
  const facts = { alertId: 7, fingerprint: "f", alert, reason: "advice" } as const;
  const { headline } = buildMessage({
    ...facts,
    advice: { state: "pending", text: null, reason: null },
    spike: { ...spike, windowCount: 0 },
  });
  expect(headline).toMatch(
    /^Many rules from one address in zone 101: quiet now; earlier 2001:db8:1:2::\/64 triggered 41/,
  );
});

const toSpike = (over: Partial<Parameters<typeof toAlertSpike>[0]>, ...attackers: StoredAttacker[]) =>
  toAlertSpike({
    ...stored,
    judgedThrough: new Date(NOW + 40 * MINUTE_MS),
    sources: sourcesOf(attackers),
    ...over,
  });

test("the headline names who attacks now, the newest first, and says who is quiet", () => {
  const attackers = [
    attackerOf("203.0.113.1", 0),
    attackerOf("203.0.113.2", 5, { lastMinutes: 39 }),
    attackerOf("AS64500", 20, { kind: "ips_per_asn", role: "facet" }),
    attackerOf("203.0.113.3", 30, { score: 9 }),
    attackerOf("/login", 39, { kind: "ips_per_url", role: "apart" }),
  ];
  const headline = (over = {}, state: "firing" | "resolved" = "firing") =>
    headlineOf(toSpike(over, ...attackers), state).replace("4 attackers in zone 101: ", "");
  expect(headline()).toBe("path /login, 203.0.113.3, 203.0.113.2 attack now; quiet: 203.0.113.1");
  const unnamed = { sources: sourcesOf(attackers, { unnamed: 7 }) };
  expect(headlineOf(toSpike(unnamed), "firing")).toBe(
    "11 attackers in zone 101: path /login, 203.0.113.3, 203.0.113.2 and 7 more attack now; quiet: 203.0.113.1",
  );
  expect(headline({ windowCount: 0 })).toBe(
    "quiet now; earlier path /login, 203.0.113.3, 203.0.113.2 and 1 more",
  );
  expect(headline({ closedAt: new Date(NOW + 70 * MINUTE_MS) }, "resolved")).toBe(
    "ended; at most path /login, 203.0.113.3, 203.0.113.2 and 1 more",
  );
  const resolved = { resolvedAttackers: ["rules_per_ip=203.0.113.3", "rules_per_ip=203.0.113.1"] };
  expect(headlineOf(toSpike(resolved, ...attackers), "firing")).toBe(
    "2 attackers in zone 101: path /login, 203.0.113.2 attack now",
  );
});

test("a facet names the attack while every other key of it is quiet", () => {
  const botnet = [
    attackerOf("t13d1516h2_8daaf6152771", 0, { kind: "ips_per_ja4" }),
    attackerOf("curl/8", 20, { kind: "ips_per_ua", role: "facet" }),
    attackerOf("203.0.113.1", 1, { role: "joined" }),
  ];
  expect(headlineOf(toSpike({}, ...botnet), "firing")).toBe(
    "2 attackers in zone 101: user agent curl/8 attacks now; quiet: 203.0.113.1, JA4 t13d1516h2_8daaf6152771",
  );
});

test("a message lists every attacker with its state, the active ones first, and none is active after the end", () => {
  const attackers = [
    attackerOf("203.0.113.1", 0),
    attackerOf("203.0.113.2", 20),
    attackerOf("203.0.113.3", 30),
  ];
  const list = (over = {}) =>
    describeIncident(toSpike(over, ...attackers)).attackers.map(
      ({ key, isActive, isResolved = false }) => `${key} ${isResolved ? "resolved" : isActive}`,
    );
  expect(list()).toEqual(["203.0.113.3 true", "203.0.113.2 true", "203.0.113.1 false"]);
  expect(list({ resolvedAttackers: ["rules_per_ip=203.0.113.3"] })).toEqual([
    "203.0.113.2 true",
    "203.0.113.3 resolved",
    "203.0.113.1 false",
  ]);
  const closed = { closedAt: new Date(NOW + 60 * MINUTE_MS), judgedThrough: new Date(NOW + 60 * MINUTE_MS) };
  expect(list(closed)).toEqual(["203.0.113.3 false", "203.0.113.2 false", "203.0.113.1 false"]);
});

test.each([
  [{ ip: ["2001:db8::/32"] }, true],
  [{ ip: ["2001:db8:1:2::99"] }, true],
  [{ ip: ["2001:db8:1:3::99"] }, false],
  [{ ip: ["198.51.100.0/24"] }, false],
  [{ asn: ["64500"], kind: ["sources"] }, true],
  [{ asn: ["AS645"] }, false],
  [{ country: ["XX"] }, false],
])("a route and a silence for %j match the alert: %s", (matchers, isMatch) => {
  expect(matchesSubject(matchers, spike)).toBe(isMatch);
  const silence = { id: 1, startsAtMs: NOW - 1, expiresAtMs: NOW + 1, matchers };
  expect(findSilence([silence], spike, NOW)?.id).toBe(isMatch ? 1 : undefined);
});

test("an alert about sources has no advice, whatever the platform said about a rule of the zone", () => {
  const ask = { zoneId: 101, askedAtMs: NOW, success: true, errorKey: null };
  const asks = ["942100", "941100", SOURCES_RULE].map((ruleId) => ({ ...ask, ruleId }));
  const routing = routeToAll(["chat"]);
  const context = { nowMs: NOW, routing, asks, silences: [], firing: [], incidents: new Set<number>() };
  const assess = createAssessor(context);
  expect(assess(spike).advice).toMatchObject({ state: "unavailable", askedAtMs: null, isDue: false });
  expect(assess(alertSpike({ ruleId: "942100" })).advice.state).toBe("present");
});
