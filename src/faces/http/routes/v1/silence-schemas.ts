import { z } from "zod";
import { SEVERITIES, SILENCE_STATES, SPIKE_KINDS } from "#model/kinds.ts";
import { isAddressPattern } from "#model/source-traits.ts";
import { IsoTime, lineOf } from "#operations/fields.ts";

const patterns = z.array(lineOf(300)).min(1).max(100);

export const WantedMatchers = z.strictObject({
  zone: z.array(z.int().min(1).max(2_147_483_647)).min(1).max(100).optional(),
  rule: z
    .array(
      z
        .string()
        .min(1)
        .max(255)
        .refine((rule) => !rule.includes("\0") && rule.isWellFormed(), "must be the id of a rule"),
    )
    .min(1)
    .max(100)
    .optional()
    .describe("Rule ids (942100), or families of rules (942*)."),
  severity: z.array(z.enum(SEVERITIES)).min(1).optional(),
  kind: z.array(z.enum(SPIKE_KINDS)).min(1).optional(),
  ip: z
    .array(z.string().refine(isAddressPattern, "must be an address or a network"))
    .min(1)
    .max(100)
    .optional()
    .describe("Addresses or networks: of a source that fires, or of most of the alert's events."),
  asn: patterns.optional(),
  country: patterns.optional(),
  ja4: patterns.optional(),
  url: patterns.optional().describe("Paths; a path may end in *."),
});

export const SilenceBody = z
  .strictObject({
    matchers: WantedMatchers.refine((matchers) => Object.keys(matchers).length > 0, {
      message: "must name zone, rule, severity, kind or a source; a silence for all alerts is not allowed",
    }).describe("An alert must match every member. A member matches if one of its values matches."),
    reason: lineOf(500).describe("Why the alerts are silenced."),
    durationMinutes: z.int().min(1).max(129_600).optional(),
    expiresAt: z.iso.datetime({ offset: true }).optional(),
  })
  .meta({
    examples: [{ matchers: { zone: [101], rule: ["942*"] }, reason: "load test", durationMinutes: 120 }],
  });

export const StoredMatchers = z.object({
  zone: z.array(z.int()).optional(),
  rule: z.array(z.string()).optional(),
  severity: z.array(z.string()).optional(),
  kind: z.array(z.string()).optional(),
  ip: z.array(z.string()).optional(),
  asn: z.array(z.string()).optional(),
  country: z.array(z.string()).optional(),
  ja4: z.array(z.string()).optional(),
  url: z.array(z.string()).optional(),
});

/** The muted alerts that are named with a silence. */
export const MUTED_SHOWN = 10;

export const Silence = z
  .object({
    id: z.number().int(),
    state: z.enum(SILENCE_STATES),
    startsAt: IsoTime,
    expiresAt: IsoTime,
    createdAt: IsoTime,
    createdBy: z.string(),
    reason: z.string(),
    matchers: StoredMatchers.nullable().describe(
      "Null if the stored matchers cannot be read. Such a silence has no effect.",
    ),
    mutes: z
      .object({
        count: z.number().int(),
        alerts: z
          .array(
            z.object({
              id: z.number().int(),
              severity: z.enum(SEVERITIES),
              state: z.string(),
              headline: z.string().nullable(),
            }),
          )
          .describe(`The ${MUTED_SHOWN} worst. The headlines may contain text from event logs. Escape them.`),
      })
      .nullable()
      .describe("The unresolved alerts that the silence mutes now; null if it is not active."),
  })
  .meta({ id: "Silence" });

export const PlannedSilence = z.object({
  id: z.number().int().nullable().describe("Null for a dry run."),
  startsAt: IsoTime,
  expiresAt: IsoTime,
  matchers: StoredMatchers,
  reason: z.string(),
  createdBy: z.string(),
  alertIds: z.array(z.number().int()).describe("The unresolved alerts that the silence matches now."),
  equalIds: z.array(z.number().int()).describe("Silences with the same matchers that are not over."),
});
