import { expect, test } from "vitest";
import { buildLateMessage, type LateMessageFacts } from "#alerts/rules/message/late-message.ts";
import { toPagerDutyEvent } from "#delivery/receivers/channels/pagerduty/pagerduty.ts";
import { toDocument } from "#delivery/rules/message/document.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { SCANNER } from "./incident.ts";

const FROM = Date.UTC(2026, 10, 24, 2, 5) / MINUTE_MS;
const TO = FROM + 135;

const attackerOf = (key: string) => ({ ...SCANNER, key, since: FROM + 10, lastFiredAt: FROM + 40 });

function build(over: Partial<LateMessageFacts> = {}) {
  const sources = {
    kind: "rules_per_ip" as const,
    findings: [attackerOf("203.0.113.9"), attackerOf("198.51.100.7"), attackerOf("192.0.2.1")],
    unnamed: 0,
    grown: [],
    rules: [],
    events: 0,
    isMasked: false,
  };
  const alert = {
    state: "resolved" as const,
    transition: 1,
    firedAtMs: FROM * MINUTE_MS,
    resolvedAtMs: (TO + 90) * MINUTE_MS,
    spikeId: null,
    transitions: [],
  };
  return buildLateMessage({
    alertId: 7,
    fingerprint: "f",
    alert,
    zone: { zoneName: "shop" },
    zoneId: 101,
    from: FROM,
    to: TO,
    isHistory: false,
    incidents: [sources],
    // An alert has named the last one.
    isActive: ({ key }) => (key === "192.0.2.1" ? null : key === "198.51.100.7"),
    newRules: [
      {
        ruleId: "942100",
        episode: { openedAt: FROM + 20, lastActiveAt: FROM + 50, peak: 90, windowMinutes: 15 },
      },
    ],
    activeRules: 0,
    ...over,
  });
}

test("the message names the time that came late, and the attackers and rules that no alert has named", () => {
  const message = build();
  expect(message.headline).toBe(
    "2026-11-24 02:05 to 04:20 UTC in zone 101 (shop) arrived late: 2 attackers, 1 rule; 1 still active",
  );
  expect(message.attackers?.map(({ key, isActive }) => [key, isActive])).toEqual([
    ["198.51.100.7", true],
    ["203.0.113.9", false],
  ]);
  expect(message.details).toEqual([
    expect.stringMatching(/^198\.51\.100\.7 triggered 41 different rules .*; 2026-11-24 02:15 to 02:45 UTC$/),
    expect.stringMatching(/^203\.0\.113\.9 triggered 41 different rules /),
    "rule 942100 (SQL injection): up to 90 events in 15 min; 2026-11-24 02:25 to 02:55 UTC",
  ]);
});

test("the findings of the hours before a first start are called that", () => {
  expect(build({ isHistory: true, to: FROM + 72 * 60 }).headline).toBe(
    "in the 72 hours before you started, zone 101 (shop): 2 attackers, 1 rule; 1 still active",
  );
});

test("a channel shows all of a late message, and PagerDuty opens nothing", () => {
  const { blocks, ...head } = toDocument(build(), "transition");
  expect(head).toMatchObject({ statusText: "Arrived late", subject: "zone 101 (shop) · late events" });
  const facts = blocks.find(({ name }) => name === "facts")?.lines ?? [];
  expect(facts.flat().map(({ as }) => as)).toEqual(["text", "text", "text"]);
  expect(toPagerDutyEvent(build()).event_action).toBe("resolve");
});
