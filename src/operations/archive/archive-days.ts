import { z } from "zod";
import { listReportedDays } from "#db/archive/archived-days.ts";
import { toDay } from "#model/horizon.ts";
import { ARCHIVE_KINDS } from "#model/kinds.ts";
import { IsoTime, Name, toIso, visibleZones } from "../fields.ts";
import { defineQuery } from "../operation.ts";
import { DAYS_QUERY, readDays } from "../span.ts";

const MAX_DAYS = 800;

const ArchiveDay = z
  .object({
    zoneId: z.number().int(),
    day: Name.describe("The UTC day: 2026-11-21."),
    isInPostgres: z
      .boolean()
      .describe("Whether Postgres still has the events, too. The files answer searches."),
    files: z.array(
      z.object({
        kind: z.enum(ARCHIVE_KINDS),
        path: Name.describe("Relative to the archive folder."),
        sha256: Name,
        bytes: z.number(),
        rows: z.number().int(),
        writtenAt: IsoTime,
        checkedAt: IsoTime.describe("When the file was last compared with its hash and was equal."),
        damage: Name.nullable().describe("The problem of a missing or damaged file; else null."),
      }),
    ),
  })
  .meta({ id: "ArchiveDay" });

export const listArchiveDays = defineQuery({
  name: "archive.days",
  summary: "List archive days with their files, hashes and last checks",
  description: `At most ${MAX_DAYS} days, oldest first. Days that are not in the archive are left out.`,
  http: ["GET", "/api/v1/archive/days"],
  tag: "Coverage",
  scope: "read",
  refuses: [422],
  input: z.strictObject(DAYS_QUERY),
  output: z.object({ items: z.array(ArchiveDay) }),
  run: async ({ db, now, caller }, { zone, ...asked }) => {
    const { fromMs, toMs } = readDays(asked, { nowMs: now, max: MAX_DAYS });
    const wanted = { zoneIds: visibleZones(caller, zone), from: toDay(fromMs), to: toDay(toMs) };
    const days = await listReportedDays(db, wanted);
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
});
