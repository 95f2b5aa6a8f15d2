import { expect, test } from "vitest";
import { fingerprintOf } from "#model/fingerprint.ts";
import { SOURCES_RULE, type StoredSources } from "#model/stored-sources.ts";
import { matchesSubject } from "#model/subject.ts";
import type { AlertRecord } from "#stages/alerting/alert-record.ts";
import { toAlertSpike } from "#stages/alerting/alert-spike.ts";
import { createAssessor } from "#stages/alerting/assess.ts";
import { buildMessage } from "#stages/alerting/message/build-message.ts";
import { routeToAll } from "#stages/alerting/routing/routing.ts";
import { findSilence } from "#stages/alerting/silence.ts";
import { alertSpike, EVIDENCE, NOW, play } from "./support.ts";

const SOURCES: StoredSources = {
  kind: "rules_per_ip",
  findings: [
    {
      kind: "rules_per_ip",
      key: "2001:db8:1:2::/64",
      members: 41,
      usualMembers: 3,
      windowMinutes: 15,
      count: 38,
      usual: 4.2,
      threshold: 16.3,
      score: 5.1,
      since: 1,
    },
  ],
  grown: [
    { dimension: "asn", value: "AS64500", now: 187, before: 0 },
    { dimension: "rule", value: "942100", now: 96, before: 11 },
  ],
  rules: [{ value: "941100", count: 9 }],
  events: 187,
  isMasked: true,
};
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
    "187 events of this source in 15 min, mostly rules 941100",
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
  const context = { nowMs: NOW, routing, asks, silences: [], firing: [] };
  const assess = createAssessor(context);
  expect(assess(spike).advice).toMatchObject({ state: "unavailable", askedAtMs: null, isDue: false });
  expect(assess(alertSpike({ ruleId: "942100" })).advice.state).toBe("present");
});
