import { z } from "zod";
import { compareRuleDays, listAdvice } from "#db/detection/rule-history.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { IsoTime, Name, RuleId, Text, toIso, toIsoOrNull, ZoneId } from "../fields.ts";
import { defineQuery } from "../operation.ts";

const METRIC_DAYS = 28;
const MAX_ADVICE = 50;
const MAX_TEXT_CHARS = 2_000;

const RuleFacts = z
  .object({
    advice: z
      .array(
        z.object({
          askedAt: IsoTime,
          success: z.boolean(),
          text: Text.nullable().describe("Text of the platform's AI. Escape it."),
          errorKey: Name.nullable(),
          spikeId: z.number().int().nullable(),
        }),
      )
      .describe("The platform's recommendations, newest first."),
    days: z
      .array(
        z.object({
          day: Name,
          platform: z.number().nullable().describe("The platform's own count; null if it was not read."),
          stored: z.number(),
          fetchedAt: IsoTime.nullable(),
        }),
      )
      .describe("The platform's own daily counts beside the stored ones, oldest first."),
  })
  .meta({ id: "RuleFacts" });
type RuleFacts = z.infer<typeof RuleFacts>;

export const showRuleFacts = defineQuery({
  name: "rules.facts",
  summary: "Show the recommendations for a rule and the platform's own counts",
  http: ["GET", "/api/v1/rules/facts"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  input: z.strictObject({ zone: ZoneId, rule: RuleId }),
  output: RuleFacts,
  command: {
    examples: ["rules facts --zone 101 --rule 942100"],
    help: "Each day has the events that Longwatch has stored and those that the platform has counted.",
    say: ({ advice, days }) => {
      const lines = [...days.map(describeDay), ...advice.map(describeAdvice)];
      return `${lines.length === 0 ? "No daily count and no recommendation is stored." : lines.join("\n")}\n`;
    },
  },
  run: async ({ db, now }, { zone, rule }) => {
    const series = { zoneId: zone, ruleId: rule };
    const advice = await listAdvice(db, series, MAX_ADVICE);
    const days = await compareRuleDays(db, series, now - METRIC_DAYS * DAY_MS);
    return {
      advice: advice.map(({ askedAt, ...rest }) => ({ ...rest, askedAt: toIso(askedAt) })),
      days: days.map(({ fetchedAt, ...day }) => ({ ...day, fetchedAt: toIsoOrNull(fetchedAt) })),
    };
  },
});

function describeDay({ day, stored, platform }: RuleFacts["days"][number]): string {
  return `${day}   ${formatWhole(stored)} stored, ${platform === null ? "the platform's count was not read" : `${formatWhole(platform)} counted by the platform`}`;
}

function describeAdvice({ askedAt, text, errorKey }: RuleFacts["advice"][number]): string {
  return `${showTime(Date.parse(askedAt))}   ${text === null ? `no recommendation (${errorKey ?? "unknown"})` : toLine(text, MAX_TEXT_CHARS)}`;
}
