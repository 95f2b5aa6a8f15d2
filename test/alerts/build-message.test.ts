import fc from "fast-check";
import { expect, test } from "vitest";
import type { AlertRecord } from "#alerts/rules/alert-record.ts";
import type { AlertSpike } from "#alerts/rules/alert-spike.ts";
import { toAlertSpike } from "#alerts/rules/alert-spike.ts";
import { buildMessage } from "#alerts/rules/message/build-message.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { createActionStates } from "#model/action-class.ts";
import { alertMessage } from "#model/alert-message.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { verdictOf } from "#test/support/stored-verdict.ts";
import { attackerOf, incidentOf } from "./incident.ts";
import { alertSpike, EVIDENCE, NOW, play } from "./support.ts";

const pending = { state: "pending", text: null, reason: null } as const;

function build(spike: AlertSpike, alerts: AlertRecord[] = [], nowMs = NOW) {
  const reason = play(alerts, { spike, nowMs }).at(-1) ?? "first";
  const alert = alerts.at(-1);
  if (alert === undefined) throw new Error("nothing fired");
  return buildMessage({ alertId: 7, fingerprint: "f", alert, reason, spike, advice: pending });
}

test("a message has the rule, the zone, the counts, the usual count and the top values", () => {
  const message = build(alertSpike());
  expect(message).toMatchObject({
    headline: "SQL injection: rule 942100 in zone 101 is spiking, 50 events in 3 min, 25 times the usual 2",
    reason: "first",
    state: "firing",
    ruleTitle: "SQL injection",
    startedAt: NOW,
    endedAt: null,
    count: 50,
    usual: 2,
    times: 25,
    actions: { blocked: 40, logged: 10, challenged: 0, other: 0 },
    top: { ips: EVIDENCE.top.ip, paths: EVIDENCE.top.path },
    sparkline: [0, 0, 3, 50],
    advice: pending,
    links: [],
    howToSilence: "longwatch silences add --zone 101 --rule=942100 --for 2h --reason 'why'",
  });
});

test("a message says what was noted on its zone in the half hour before, unless its verdict says so", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: alertSpike(), nowMs: NOW });
  const facts = { alertId: 7, fingerprint: "f", alert: alerts[0] as AlertRecord, reason: "first" } as const;
  const noted = (minutes: number, text: string, zoneId: number | null = null) => ({
    atMs: NOW - minutes * MINUTE_MS,
    zoneId,
    text,
  });
  const detailsOf = (notes: ReturnType<typeof noted>[], verdict?: StoredVerdict) =>
    buildMessage({ ...facts, spike: alertSpike(), advice: pending, notes, verdict }).details ?? [];
  const began = 'began 4 min after "deploy 1.4.2"';
  expect(detailsOf([noted(20, "new rule set"), noted(4, "deploy 1.4.2", 101)])).toContain(began);
  expect(detailsOf([noted(0, "deploy 1.4.2")])).toContain('began with "deploy 1.4.2"');
  for (const one of [noted(31, "too early"), noted(-1, "too late"), noted(4, "of another zone", 102)])
    expect(detailsOf([one]).join()).not.toContain("began");
  const verdict = { ...verdictOf({ said: "misfire" }), for: [`It ${began}.`] };
  expect(detailsOf([noted(4, "deploy 1.4.2")], verdict)).not.toContain(began);
});

test("a message counts actions by the words of the configuration, and names the words that are not known", () => {
  const actions = createActionStates({ stopped: ["tar pit"], through: ["tag"] });
  const words = { deny: 5, Tarpit: 4, captcha: 3, tag: 2, rewrite: 1 };
  const action = Object.entries(words).map(([value, count]) => ({ value, count, share: count / 15 }));
  const spike = alertSpike({ evidence: { ...EVIDENCE, top: { ...EVIDENCE.top, action } } });
  const alerts: AlertRecord[] = [];
  play(alerts, { spike, nowMs: NOW });
  const alert = alerts[0] as AlertRecord;
  const facts = { alertId: 7, fingerprint: "f", alert, reason: "first", spike, advice: pending } as const;
  expect(buildMessage({ ...facts, actions })).toMatchObject({
    actions: { blocked: 9, challenged: 3, logged: 2, other: 1 },
    unknownActions: ["rewrite"],
  });
  expect(buildMessage(facts)).toMatchObject({ unknownActions: ["Tarpit", "tag", "rewrite"] });
});

test("a message says why its severity is so, with the addresses that its verdict counts", () => {
  const { counts } = verdictOf();
  const verdict = verdictOf({ counts: { ...counts, addresses: 12, injectedThrough: 21 } });
  const detailsOf = (over: Partial<AlertSpike>, given?: typeof verdict) => {
    const spike = alertSpike({ addresses: 15, ...over });
    const alerts: AlertRecord[] = [];
    play(alerts, { spike, nowMs: NOW });
    const alert = alerts[0] as AlertRecord;
    const facts = { alertId: 7, fingerprint: "f", alert, reason: "first", spike, advice: pending } as const;
    return buildMessage({ ...facts, ...(given && { verdict: given }) }).details;
  };
  const critical = { gradedBy: "both", severity: "critical" } as const;
  expect(detailsOf(critical)).toEqual(["severity: 15 addresses send these events, far above the usual"]);
  expect(detailsOf(critical, verdict)).toEqual([
    "severity: 12 addresses send these events, far above the usual",
  ]);
  expect(detailsOf({ gradedBy: "addresses" }, verdict)).toEqual([
    "severity: few addresses (12) send these events",
  ]);
  expect(detailsOf({ gradedBy: "both", severity: "warning" }, verdict)).toEqual([
    "severity: the verdict, which counts 12 addresses, lowers it from critical",
  ]);
  expect(detailsOf({ gradedBy: "score", severity: "error", raisedFrom: "warning" }, verdict)).toEqual([
    "severity: the verdict raises it from warning, because 21 requests with an injection got through",
  ]);
  const sure = verdictOf({ odds: 0.9 });
  expect(detailsOf({ gradedBy: "score", raisedFrom: "info" }, sure)).toEqual([
    "severity: the verdict raises it from info, because it is almost certainly an attack",
  ]);
  expect(detailsOf({ gradedBy: "score" }, verdict)).toBeUndefined();
});

test("a resolved message has the time range and the peak", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: alertSpike(), nowMs: NOW });
  const closedAtMs = NOW + 20 * MINUTE_MS;
  expect(build(alertSpike({ closedAtMs }), alerts, closedAtMs + 5_000)).toMatchObject({
    reason: "resolved",
    state: "resolved",
    transition: 2,
    startedAt: NOW,
    endedAt: closedAtMs,
    headline:
      "SQL injection: rule 942100 in zone 101 is back to its usual rate: 2 in 3 min, usually 2; peak 60",
  });
});

test("a usual count of zero gives no ratio", () => {
  const message = build(alertSpike({ baseline: 0, ruleId: "1048576" }));
  expect(message).toMatchObject({ times: null, ruleTitle: null });
  expect(message.headline).toBe("rule 1048576 in zone 101 is spiking, 50 events in 3 min, usually none");
});

test("a new rule's burst is information and says so", () => {
  const { openedAtMs: _, closedAtMs: __, ...rest } = alertSpike();
  const stored = {
    ...rest,
    severity: "critical",
    kind: "new-rule",
    openedAt: new Date(NOW),
    closedAt: null,
  } as const;
  const message = build(toAlertSpike(stored));
  expect(message).toMatchObject({ severity: "info", kind: "new-rule" });
  expect(message.headline).toContain("is newly active");
});

test("a new rule without events in its window has calmed down and is not newly active", () => {
  const message = build(alertSpike({ kind: "new-rule", severity: "info", windowCount: 0 }));
  expect(message.headline).toBe(
    "SQL injection: rule 942100 in zone 101 was newly active and has calmed down, 0 events in 3 min, peak 60",
  );
});

test("any hostile evidence makes a message that the channels accept, with its texts as they were", () => {
  const text = fc.string({ unit: "binary", maxLength: 60 });
  fc.assert(
    fc.property(text, text, (ip, ruleId) => {
      const evidence = { ...EVIDENCE, top: { ...EVIDENCE.top, ip: [{ value: ip, count: 1, share: 1 }] } };
      const message = build(alertSpike({ ruleId, evidence }));
      expect(alertMessage.parse(message).top.ips[0]?.value).toBe(ip);
      expect(message.ruleId).toBe(ruleId);
    }),
  );
});

test("an alert that still fires has no end, though its spike is over", () => {
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: alertSpike(), nowMs: NOW });
  const [alert] = alerts;
  if (alert === undefined) throw new Error("nothing fired");
  const spike = alertSpike({ closedAtMs: NOW + 20 * MINUTE_MS });
  const facts = { alertId: 7, fingerprint: "f", reason: "first", spike, advice: pending } as const;
  expect(buildMessage({ ...facts, alert })).toMatchObject({ state: "firing", endedAt: null });
});

test("an incident's message lists its rules, the most severe first and then the largest, and how to list them", () => {
  const incident = toAlertSpike({
    ...alertSpike(),
    ...incidentOf(attackerOf("203.0.113.9")),
    openedAt: new Date(NOW),
    closedAt: null,
  });
  const alerts: AlertRecord[] = [];
  play(alerts, { spike: incident, nowMs: NOW });
  const members = [
    alertSpike({ id: 2, ruleId: "930001", windowCount: 80 }),
    alertSpike({ id: 3, ruleId: "930002", windowCount: 900 }),
    alertSpike({ id: 4, ruleId: "942100", severity: "critical", windowCount: 12 }),
  ];
  const message = buildMessage({
    alertId: 7,
    fingerprint: "f",
    alert: alerts[0] as AlertRecord,
    reason: "first",
    spike: incident,
    advice: pending,
    members,
  });
  expect(message.members?.map(({ ruleId, count }) => `${ruleId} ${count}`)).toEqual([
    "942100 12",
    "930002 900",
    "930001 80",
  ]);
  expect(message.howToList).toBe("longwatch alerts list --incident 7 --state all");
  // The members do not change how severe the incident is, nor what it counts.
  expect(message).toMatchObject({ severity: "error", count: 50, unit: "rules", ruleId: "(sources)" });
});
