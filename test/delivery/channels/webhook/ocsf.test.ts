import { Webhook } from "standardwebhooks";
import { expect, onTestFinished, test } from "vitest";
import { toOcsfFinding } from "#delivery/receivers/channels/webhook/to-ocsf-finding.ts";
import { webhook } from "#delivery/receivers/channels/webhook/webhook.ts";
import { MAX_BODY_BYTES } from "#delivery/receivers/channels/webhook/webhook-body.ts";
import { createSecret } from "#lib/secret.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { startReplyQueue } from "#test/platform/support/reply-queue.ts";
import { findOcsfMistakes } from "#test/support/validate-ocsf.ts";
import { HOSTILE } from "../../support/hostile.ts";
import {
  changesMessage,
  hostileMessage,
  incidentWith,
  messageOf,
  messageSaying,
  sourcesMessage,
  verdictMessage,
} from "../../support/messages.ts";
import { NOW, SIGNING_SECRET, sendOptions } from "../../support/receiver.ts";

/** Returns the object after a check of its size and of every attribute. */
function render(message: AlertMessage): Record<string, unknown> {
  const body = toOcsfFinding(message, NOW);
  expect(Buffer.byteLength(body)).toBeLessThan(MAX_BODY_BYTES);
  expect(body).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}<>&]/u);
  const finding = JSON.parse(body) as Record<string, unknown>;
  expect(findOcsfMistakes("detection_finding", finding)).toEqual([]);
  return finding;
}

const self = {
  kind: "self",
  zoneId: null,
  ruleId: null,
  ruleTitle: null,
  sparkline: [],
  links: [],
} satisfies Partial<AlertMessage>;
const ENDED = { reason: "resolved", state: "resolved", endedAt: NOW } as const;

test.each<[string, AlertMessage]>([
  ["a spike", messageOf()],
  ["a verdict", verdictMessage({ zoneName: "shop", zoneLabels: { team: "web", none: "" } })],
  ["an incident", sourcesMessage()],
  ["an incident with rules", incidentWith(12)],
  ["a changed rule", changesMessage()],
  ["an alert of Longwatch", messageOf(self)],
  ["hostile text", hostileMessage()],
  ["the end", messageOf(ENDED)],
  ["advice that is missing", messageOf({ advice: { state: "unavailable", text: null, reason: "off" } })],
  ["times that no calendar reaches", messageOf({ ...ENDED, startedAt: -9e15, endedAt: 9e15 })],
])("%s is a valid Detection Finding", (_name, message) => {
  expect(render(message)).toMatchObject({ finding_info: { uid: message.dedupeKey } });
});

test.each([
  [{ reason: "first" }, { activity_id: 1, type_uid: 200_401, status_id: 1, is_alert: true }],
  [{ reason: "worse" }, { activity_id: 2, type_uid: 200_402, status_id: 1, is_alert: true }],
  [
    { reason: "acknowledged", state: "acknowledged" },
    { activity_id: 2, status_id: 2 },
  ],
  [ENDED, { activity_id: 3, type_uid: 200_403, status_id: 4, is_alert: false, end_time: NOW }],
] as const)("the transition %j has its activity", (over, wanted) => {
  expect(render(messageOf(over))).toMatchObject(wanted);
});

test("a finding has the expectation, the evidence and the advice of its alert", () => {
  const finding = render(verdictMessage());
  expect(finding).toMatchObject({
    severity_id: 5,
    metadata: { uid: "7-1", product: { name: "Longwatch" } },
    resources: [{ uid: "101", type: "zone" }],
    anomaly_analyses: [
      {
        anomalies: [{ observation_parameter: "events in 5 minutes", observations: [{ value: "847" }] }],
        baselines: [{ observations: [{ value: "12.4" }] }, { observations: [{ value: "45.2" }] }],
      },
    ],
    remediation: {
      desc: expect.stringMatching(/Block the 4 addresses[\s\S]*\n\nMost requests come from one network/),
    },
    finding_info: {
      related_analytics: [{ type_id: 1, uid: "942100" }],
      src_url: "https://wiki.example/runbooks/sqli?rule=942100",
    },
  });
  expect(finding["evidences"]).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ name: "request", url: expect.objectContaining({ path: "/login" }) }),
      {
        name: "ips",
        src_endpoint: { ip: "203.0.113.7" },
        data: { value: "203.0.113.7", count: 612, share: 0.7226 },
      },
      expect.objectContaining({ name: "ips", src_endpoint: { name: "198.51.100.*" } }),
    ]),
  );
  expect(finding["metadata"]).not.toHaveProperty("is_truncated");
});

test.each(Object.entries(HOSTILE))("%s arrives as it was, in bytes that are harmless", (_name, text) => {
  expect(render(messageSaying(text))["message"]).toBe(text.toWellFormed());
});

test.each(["x", "💥", "\u{e0041}", "\ud800", "\u2028", '"', "<"])(
  "any amount of %j leaves less than 20 KB of a valid finding with its whole key",
  (character) => {
    const long = character.repeat(30_000);
    const key = character.repeat(255).slice(0, 255);
    const wide = character.repeat(200);
    const members = incidentWith(500, {}, () => ({ ruleId: wide, zoneName: wide })).members ?? [];
    const rows = Array.from({ length: 20 }, () => ({ value: long, count: 1, share: 0.1 }));
    const finding = render(
      messageSaying(long, {
        fingerprint: key,
        dedupeKey: key,
        members,
        zoneName: long,
        zoneLabels: Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`l${index}`, long])),
        details: rows.map(({ value }) => value),
        rules: rows.map(({ value }) => value),
        top: { ips: rows, asns: rows, countries: rows, paths: rows, userAgents: rows, ja4s: rows },
        links: [{ title: long, url: `https://x.example/${"&".repeat(450)}` }],
      }),
    );
    expect(finding).toMatchObject({
      metadata: { is_truncated: true },
      finding_info: { uid: key.toWellFormed() },
      unmapped: { member_count: 500 },
    });
  },
);

test("a digest of the channel's limit names every alert", () => {
  const {
    in: _in,
    maxChars,
    charsBeside,
  } = webhook.capabilities.rate.digest as {
    in: string;
    maxChars: number;
    charsBeside: number;
  };
  const name = "9".repeat(80);
  const digest = Array.from({ length: Math.floor(maxChars / (name.length + charsBeside)) }, (_, index) => ({
    alertId: 100_000 + index,
    reason: "acknowledged" as const,
    severity: "critical" as const,
    zoneId: 101,
    name,
  }));
  const none = { ips: [], asns: [], countries: [], paths: [], userAgents: [], ja4s: [] };
  const finding = render(messageOf({ kind: "self", ruleId: null, ruleTitle: null, top: none, digest }));
  const { related_events: named } = finding["finding_info"] as { related_events: { uid: string }[] };
  expect(named.map(({ uid }) => uid)).toEqual(digest.map(({ alertId }) => String(alertId)));
});

test("a webhook with the format ocsf sends one signed finding for an incident with many rules", async () => {
  const receiver = await startReplyQueue();
  onTestFinished(() => receiver.close());
  receiver.reply(200);
  const notifier = webhook.open({
    name: "siem",
    url: createSecret(receiver.url),
    secrets: [createSecret(SIGNING_SECRET)],
    format: "ocsf",
    clock: () => Date.now(),
    network: { allowPrivateNetworks: true },
  });
  await notifier.send(incidentWith(5_000), sendOptions({}));
  expect(receiver.requests).toHaveLength(1);
  const { body = "", headers } = receiver.requests[0] ?? {};
  const read = new Webhook(SIGNING_SECRET).verify(body, headers as Record<string, string>);
  expect(findOcsfMistakes("detection_finding", read)).toEqual([]);
  expect(read).toMatchObject({ unmapped: { member_count: 5_000 } });
});
