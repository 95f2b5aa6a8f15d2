import { z } from "zod";
import { severities } from "../../../model/alert-message.ts";
import { IsoTime } from "./parts.ts";

export const ALERT_STATES = ["firing", "acknowledged", "resolved"] as const;
export const ALERT_KINDS = ["spike", "new-rule", "group", "self"] as const;

const count = z.number();
const Top = z.array(z.object({ value: z.string(), count, share: z.number() }));

export const AlertItem = z
  .object({
    id: z.number().int(),
    state: z.enum(ALERT_STATES),
    severity: z.enum(severities),
    kind: z.string().describe(`One of ${ALERT_KINDS.join(", ")}; self is about Longwatch.`),
    zoneId: z.number().int().nullable(),
    zoneName: z
      .string()
      .nullable()
      .describe("From the configuration file, as it was when the alert was last told."),
    ruleId: z.string().nullable(),
    ruleTitle: z.string().nullable().describe("What a managed rule is about."),
    headline: z.string().nullable().describe("Text of logs, to be escaped."),
    firedAt: IsoTime,
    acknowledgedAt: IsoTime.nullable(),
    acknowledgedBy: z.string().nullable(),
    resolvedAt: IsoTime.nullable(),
    fingerprint: z.string(),
    transition: z.number().int().describe("Number of the latest transition, from 1."),
    links: z
      .array(z.object({ title: z.string(), url: z.string() }))
      .describe("Runbooks and dashboards that the operator has named for such alerts."),
  })
  .meta({ id: "Alert" });

const AlertTransition = z
  .object({
    transition: z.number().int(),
    at: IsoTime,
    reason: z.string().describe("first, worse, repeat, advice, resolved, or a person's acknowledged."),
    state: z.enum(ALERT_STATES),
    severity: z.enum(severities).nullable(),
    channels: z.array(z.string()),
    silencedBy: z.number().int().nullable(),
    by: z.string().nullable(),
    note: z.string().nullable(),
  })
  .meta({ id: "AlertTransition" });

export const DeliveryOfAlert = z.object({
  channel: z.string(),
  transition: z.number().int(),
  reason: z.string(),
  state: z.string(),
  attempts: z.number().int(),
  createdAt: IsoTime,
  nextAttemptAt: IsoTime.nullable(),
  deliveredAt: IsoTime.nullable(),
  lastError: z.string().nullable(),
});

export const AlertDetail = AlertItem.extend({
  facts: z
    .object({
      windowMinutes: z.number(),
      count,
      usual: z.number(),
      threshold: z.number(),
      score: z.number(),
      peak: count,
      times: z.number().nullable(),
      actions: z.object({ blocked: count, logged: count, challenged: count, other: count }),
      sparkline: z.array(z.number()).describe("Counts of equal spans, oldest first."),
    })
    .nullable()
    .describe("What the alert last said in numbers; null where it cannot be read."),
  evidence: z
    .object({ ips: Top, asns: Top, countries: Top, paths: Top, userAgents: Top, ja4s: Top })
    .nullable()
    .describe("Who or what was behind the events. Text of requests, to be escaped."),
  advice: z
    .object({
      state: z.enum(["pending", "present", "unavailable"]),
      text: z.string().nullable(),
      reason: z.string().nullable(),
      source: z.literal("platform AI").describe("Not verified; nothing of it was applied."),
    })
    .nullable(),
  members: z
    .array(z.object({ zoneId: z.number().int(), ruleId: z.string(), severity: z.string(), count }))
    .describe("The rules that a group speaks for."),
  spikeId: z.number().int().nullable(),
  howToSilence: z.string().nullable(),
  transitions: z.array(AlertTransition),
  deliveries: z.array(DeliveryOfAlert),
}).meta({ id: "AlertDetail" });
