import { z } from "zod";
import { severities } from "#model/alert-message.ts";
import { ALERT_KINDS } from "#model/kinds.ts";
import { IsoTime } from "#operations/fields.ts";
import { StoredMatchers } from "#operations/silences/silence.ts";
import { SILENCE_SCOPES } from "#stages/alerting/message/silence-choices.ts";

export const ALERT_STATES = ["firing", "acknowledged", "resolved"] as const;

const count = z.number();

/** The silence that mutes an alert: by whom, until when and why. */
const MutedBy = z.object({
  id: z.number().int(),
  expiresAt: IsoTime,
  createdBy: z.string(),
  reason: z.string(),
});

const Top = z.array(z.object({ value: z.string(), count, share: z.number() }));

export const AlertItem = z
  .object({
    id: z.number().int(),
    state: z.enum(ALERT_STATES),
    severity: z.enum(severities),
    kind: z
      .string()
      .describe(`One of ${ALERT_KINDS.join(", ")}. An alert of kind self is about Longwatch itself.`),
    zoneId: z.number().int().nullable(),
    zoneName: z
      .string()
      .nullable()
      .describe("The zone's name in the configuration file at the time of the latest message."),
    ruleId: z.string().nullable(),
    ruleTitle: z.string().nullable().describe("Title of a managed rule; null for other rules."),
    headline: z.string().nullable().describe("The text may contain text from event logs. Escape it."),
    firedAt: IsoTime,
    acknowledgedAt: IsoTime.nullable(),
    acknowledgedBy: z.string().nullable(),
    resolvedAt: IsoTime.nullable(),
    quietSince: IsoTime.nullable().describe(
      "Set while an open alert's count is an everyday one again: the end of the last minute that was not quiet.",
    ),
    fingerprint: z.string(),
    silence: MutedBy.nullable().describe(
      "The silence that mutes the alert now, the one that ends last. Null for a resolved alert.",
    ),
    transition: z
      .number()
      .int()
      .describe("Number of the latest transition. The first transition has number 1."),
    links: z
      .array(z.object({ title: z.string(), url: z.string() }))
      .describe("Runbooks and dashboards that the configuration file names for such alerts."),
  })
  .meta({ id: "Alert" });

const AlertTransition = z
  .object({
    transition: z.number().int(),
    at: IsoTime,
    reason: z.string().describe("One of first, worse, repeat, advice, resolved, acknowledged."),
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
      sparkline: z
        .array(z.number())
        .describe("Event counts of consecutive spans of equal length, oldest first."),
    })
    .nullable()
    .describe("The numbers of the latest message; null if the stored message cannot be read."),
  evidence: z
    .object({ ips: Top, asns: Top, countries: Top, paths: Top, userAgents: Top, ja4s: Top })
    .nullable()
    .describe(
      "The most frequent sources and targets of the events. The values are text from requests. Escape them.",
    ),
  advice: z
    .object({
      state: z.enum(["pending", "present", "unavailable"]),
      text: z.string().nullable(),
      reason: z.string().nullable(),
      source: z
        .literal("platform AI")
        .describe("The advice is not verified, and Longwatch has not applied it."),
    })
    .nullable()
    .describe(
      "What the platform said about the alert's rule in all of its zone. Null if the alert is not about rules.",
    ),
  members: z
    .array(z.object({ zoneId: z.number().int(), ruleId: z.string(), severity: z.string(), count }))
    .describe("The rules of a group; empty for other alerts."),
  spikeId: z.number().int().nullable(),
  howToSilence: z.string().nullable(),
  silenceChoices: z
    .array(z.object({ scope: z.enum(SILENCE_SCOPES), matchers: StoredMatchers, command: z.string() }))
    .describe("Silences that can be made from the alert, the narrowest first."),
  silenced: z
    .array(MutedBy.extend({ from: IsoTime, to: IsoTime.nullable().describe("Null while it lasts.") }))
    .describe("When silences that match the alert were in force while the alert was open, oldest first."),
  transitions: z.array(AlertTransition),
  deliveries: z.array(DeliveryOfAlert),
}).meta({ id: "AlertDetail" });
