import { z } from "zod";
import { readCoverageDays } from "#db/coverage/coverage-report.ts";
import { UNPREVENTABLE } from "#stages/coverage/judge-hour.ts";
import { IsoTime, Name, toIso, visibleZones } from "../fields.ts";
import { defineQuery } from "../operation.ts";
import { DAYS_QUERY, readDays } from "../span.ts";

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

export const countDays = defineQuery({
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
