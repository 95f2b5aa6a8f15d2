/** The operations on coverage. */
import { z } from "zod";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { readCoverageDays } from "#db/proof/coverage-report.ts";
import { readHourPasses, readRuleCells } from "#db/proof/rule-cells.ts";
import { startOfHour } from "#model/horizon.ts";
import { IsoTime, Name, Time, toIso, toIsoOrNull, visibleZones, ZoneId } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { DAYS_QUERY, readDays } from "#operations/span.ts";
import { UNPREVENTABLE } from "#proof/rules/judge-hour.ts";
import { listCoverage } from "./hours.ts";
import { withdraw } from "./withdrawals.ts";

const MAX_DAYS = 4_000;

const CoverageDay = z
  .object({
    zoneId: z.number().int(),
    day: Name.describe("The UTC day: 2026-11-21."),
    sealed: z.number().int().describe("Number of hours."),
    open: z.number().int(),
    gap: z.number().int(),
    unwatched: z.number().int(),
    stored: z.number().describe("Stored events."),
  })
  .meta({ id: "CoverageDay" });

const countDays = defineQuery({
  name: "coverage.days",
  summary: "Count hours by state for each day",
  description: `At most ${MAX_DAYS} days. Days without a recorded hour are left out.`,
  http: ["GET", "/api/v1/coverage/days"],
  tag: "Coverage",
  scope: "read",
  refuses: [422],
  input: z.strictObject(DAYS_QUERY),
  output: z.object({ from: IsoTime, to: IsoTime, items: z.array(CoverageDay) }),
  run: async ({ db, now, caller }, { zone, ...asked }) => {
    const span = readDays(asked, { nowMs: now, max: MAX_DAYS });
    const zoneIds = visibleZones(caller, zone);
    const items = await readCoverageDays(db, { zoneIds, unwatched: UNPREVENTABLE, ...span });
    return { from: toIso(span.fromMs), to: toIso(span.toMs), items };
  },
});

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

const compareRules = defineQuery({
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

export const coverageOperations = [listCoverage, countDays, compareRules, withdraw] as const;
