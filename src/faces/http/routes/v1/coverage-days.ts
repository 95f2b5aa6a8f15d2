import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { readCoverageDays } from "#db/coverage/coverage-days.ts";
import { IsoTime, toIso, visibleZones } from "#operations/fields.ts";
import { DAYS_QUERY, readDays } from "#operations/span.ts";
import { UNPREVENTABLE } from "#stages/coverage/judge-hour.ts";
import type { ApiDeps } from "./api-deps.ts";

const MAX_DAYS = 4_000;

export const CoverageDay = z
  .object({
    zoneId: z.number().int(),
    day: z.string().describe("The UTC day: 2026-11-21."),
    sealed: z.number().int().describe("Number of hours."),
    open: z.number().int(),
    gap: z.number().int(),
    unwatched: z.number().int(),
    stored: z.number().describe("Stored events."),
  })
  .meta({ id: "CoverageDay" });

/** `GET /api/v1/coverage/days`: the long strip, day by day. `/coverage` has the hours. */
export function addCoverageDays(app: FastifyInstance, { archive, clock }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/coverage/days",
    {
      config: { access: { scope: "read" }, refuses: [422] },
      schema: {
        tags: ["Coverage"],
        summary: "Count hours by state for each day",
        description: `At most ${MAX_DAYS} days. Days without a recorded hour are left out.`,
        querystring: z.strictObject(DAYS_QUERY),
        response: { 200: z.object({ from: IsoTime, to: IsoTime, items: z.array(CoverageDay) }) },
      },
    },
    async ({ query: { zone, ...asked }, caller }) => {
      const span = readDays(asked, { nowMs: clock(), max: MAX_DAYS });
      const items = await readCoverageDays(archive, {
        zoneIds: visibleZones(caller, zone),
        unwatched: UNPREVENTABLE,
        ...span,
      });
      return { from: toIso(span.fromMs), to: toIso(span.toMs), items };
    },
  );
}
