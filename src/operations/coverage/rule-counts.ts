import { z } from "zod";
import { readHourPasses, readRuleCells } from "#db/coverage/rule-cells.ts";
import { startOfHour } from "#model/horizon.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import { IsoTime, Name, Time, toIso, toIsoOrNull, ZoneId } from "../fields.ts";
import { defineQuery } from "../operation.ts";

const MOST = 500;

const CoverageRules = z
  .object({
    startsAt: IsoTime,
    comparedAt: IsoTime.nullable().describe(
      "When the platform was asked last. Null if it was not asked yet.",
    ),
    items: z
      .array(
        z.object({
          ruleId: Name.describe("An empty text stands for events without a rule."),
          title: Name.nullable(),
          stored: z.number(),
          platform: z
            .number()
            .nullable()
            .describe("The platform's count at the last comparison. Null if it was not asked yet."),
          repairs: z.number().int().describe("How often the rule was read again because counts differed."),
        }),
      )
      .describe(`The rules whose counts differ first, then those with most events, at most ${MOST}.`),
    passes: z
      .array(
        z.object({
          pass: z.number().int(),
          pages: z
            .number()
            .int()
            .describe("Pages with an event of the hour that this pass stored as new or changed."),
          entries: z.number().int(),
          readAt: IsoTime,
        }),
      )
      .describe("The last passes over the list that showed events of the hour, newest first."),
  })
  .meta({ id: "CoverageRules" });

export const compareRules = defineQuery({
  name: "coverage.rules",
  summary: "Compare the counts of one hour with the platform's, by rule, and list the passes that read it",
  http: ["GET", "/api/v1/coverage/rules"],
  tag: "Coverage",
  scope: "read",
  zone: "zone",
  input: z.strictObject({ zone: ZoneId, hour: Time.describe("A time in the hour.") }),
  output: CoverageRules,
  run: async ({ db }, { zone: zoneId, hour }) => {
    const startsAt = startOfHour(hour);
    const { comparedAt, cells } = await readRuleCells(db, { zoneId, startsAt, limit: MOST });
    const passes = await readHourPasses(db, { zoneId, startsAt });
    return {
      startsAt: toIso(startsAt),
      comparedAt: toIsoOrNull(comparedAt),
      items: cells.map((cell) => ({ ...cell, title: ruleTitle(cell.ruleId) })),
      passes: passes.map((pass) => ({ ...pass, readAt: toIso(pass.readAt) })),
    };
  },
});
