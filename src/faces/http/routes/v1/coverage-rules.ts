import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { readHourPasses, readRuleCells } from "#db/coverage/rule-cells.ts";
import { startOfHour } from "#model/horizon.ts";
import { IsoTime, Time, toIso, toIsoOrNull, ZoneId } from "#operations/fields.ts";
import { ruleTitle } from "#stages/alerting/message/rule-title.ts";
import type { ApiDeps } from "./api-deps.ts";

const MOST = 500;

export const CoverageRules = z
  .object({
    startsAt: IsoTime,
    comparedAt: IsoTime.nullable().describe(
      "When the platform was asked last. Null if it was not asked yet.",
    ),
    items: z
      .array(
        z.object({
          ruleId: z.string().describe("An empty text stands for events without a rule."),
          title: z.string().nullable(),
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

/** `GET /api/v1/coverage/rules`: the counts of one hour by rule, here and on the platform. */
export function addCoverageRules(app: FastifyInstance, { archive }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/coverage/rules",
    {
      config: { access: { scope: "read", zone: "zone" } },
      schema: {
        tags: ["Coverage"],
        summary:
          "Compare the counts of one hour with the platform's, by rule, and list the passes that read it",
        querystring: z.strictObject({ zone: ZoneId, hour: Time.describe("A time in the hour.") }),
        response: { 200: CoverageRules },
      },
    },
    async ({ query: { zone, hour } }) => {
      const startsAt = startOfHour(hour);
      const { comparedAt, cells } = await readRuleCells(archive, { zoneId: zone, startsAt, limit: MOST });
      const passes = await readHourPasses(archive, { zoneId: zone, startsAt });
      return {
        startsAt: toIso(startsAt),
        comparedAt: toIsoOrNull(comparedAt),
        items: cells.map((cell) => ({ ...cell, title: ruleTitle(cell.ruleId) })),
        passes: passes.map((pass) => ({ ...pass, readAt: toIso(pass.readAt) })),
      };
    },
  );
}
