import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listReportedDays } from "#db/archive/archive-report.ts";
import { toDay } from "#model/horizon.ts";
import { ARCHIVE_KINDS } from "#model/kinds.ts";
import { IsoTime, toIso, visibleZones } from "#operations/fields.ts";
import { DAYS_QUERY, readDays } from "#operations/span.ts";
import type { ApiDeps } from "./api-deps.ts";

const MAX_DAYS = 800;

export const ArchiveDay = z
  .object({
    zoneId: z.number().int(),
    day: z.string().describe("The UTC day: 2026-11-21."),
    isInPostgres: z
      .boolean()
      .describe("Whether Postgres still has the events, too. The files answer searches."),
    files: z.array(
      z.object({
        kind: z.enum(ARCHIVE_KINDS),
        path: z.string().describe("Relative to the archive folder."),
        sha256: z.string(),
        bytes: z.number(),
        rows: z.number().int(),
        writtenAt: IsoTime,
        checkedAt: IsoTime.describe("When the file was last compared with its hash and was equal."),
        damage: z.string().nullable().describe("The problem of a missing or damaged file; else null."),
      }),
    ),
  })
  .meta({ id: "ArchiveDay" });

/** `GET /api/v1/archive/days`: the files of the days that can no longer change. */
export function addArchiveDays(app: FastifyInstance, { archive, clock }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/archive/days",
    {
      config: { access: { scope: "read" }, refuses: [422] },
      schema: {
        tags: ["Coverage"],
        summary: "List archive days with their files, hashes and last checks",
        description: `At most ${MAX_DAYS} days, oldest first. Days that are not in the archive are left out.`,
        querystring: z.strictObject(DAYS_QUERY),
        response: { 200: z.object({ items: z.array(ArchiveDay) }) },
      },
    },
    async ({ query: { zone, ...asked }, caller }) => {
      const { fromMs, toMs } = readDays(asked, { nowMs: clock(), max: MAX_DAYS });
      const days = await listReportedDays(archive, {
        zoneIds: visibleZones(caller, zone),
        from: toDay(fromMs),
        to: toDay(toMs),
      });
      return {
        items: days.map(({ files, ...day }) => ({
          ...day,
          files: files.map(({ writtenAt, checkedAt, ...file }) => ({
            ...file,
            writtenAt: toIso(writtenAt),
            checkedAt: toIso(checkedAt),
          })),
        })),
      };
    },
  );
}
