/** The state of the archive and its days. */
import { z } from "zod";
import { listNotUploaded } from "#db/archive/archive-files.ts";
import { listReportedDays, readZoneArchives, type ZoneArchive } from "#db/archive/archived-days.ts";
import { listDaysToArchive } from "#db/archive/days-to-archive.ts";
import { firstMovingDay, settledAt } from "#jobs/archive/archive-days.ts";
import { formatBytes } from "#lib/disk.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { ARCHIVE_KINDS } from "#model/kinds.ts";
import { IsoTime, Name, requireEveryZone, toIso, visibleZones } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { DAYS_QUERY, readDays } from "#operations/span.ts";

const MOST_WAITING = 20;

export const ArchivedZone = z.object({
  zoneId: z.number().int(),
  days: z.number().int(),
  firstDay: Name,
  lastDay: Name,
  events: z.number(),
  eventBytes: z.number(),
  recordBytes: z.number(),
  checkedAt: IsoTime.describe("The last check of the file that was checked longest ago."),
  damagedFiles: z.number().int(),
});

const ArchiveStatus = z
  .object({
    folder: Name.describe("The folder of the files; the cache, if there is a bucket."),
    bucket: Name.nullable(),
    isWritten: z.boolean().describe("Whether the service archives days."),
    hotDays: z
      .number()
      .nullable()
      .describe("How long Postgres keeps archive days. Null: as long as events are kept."),
    zones: z.array(ArchivedZone),
    notUploaded: z.number().int().describe("Number of files that are not in the bucket yet."),
    waiting: z.array(
      z.object({
        zoneId: z.number().int(),
        day: Name,
        waitingFor: Name.nullable().describe("Null: the next run writes the day."),
      }),
    ),
    nextDay: z
      .object({ day: Name, settledAt: IsoTime })
      .nullable()
      .describe("The first day that can still change, and when it no longer can."),
  })
  .meta({ id: "ArchiveStatus" });
type ArchiveStatus = z.infer<typeof ArchiveStatus>;

export const showArchiveStatus = defineQuery({
  name: "archive.status",
  summary: "Show what is in the archive, and what waits for it",
  http: ["GET", "/api/v1/archive"],
  tag: "Coverage",
  scope: "read",
  input: z.strictObject({}),
  output: ArchiveStatus,
  command: {
    examples: ["archive status", "archive status --json"],
    help: `Shows what each zone has in the archive, the days that will be written next or what they wait for, and when the next day can be
written. The command reads only the database; archive verify reads the files.`,
    say: (status, { table }) =>
      [
        status.zones.length === 0
          ? "no day is in the archive\n"
          : table(
              ["zone", "days", "from", "events", "event files", "record files", "checked"],
              toRows(status),
            ),
        describeWaiting(status),
        describeNext(status),
        describePlace(status),
      ].join(""),
  },
  run: async ({ db, now, caller, service: { archive, zoneIds } }) => {
    requireEveryZone(caller);
    const zones = await readZoneArchives(db);
    // Without configured zones, the service takes them from elsewhere, as the demo does.
    const days = await listDaysToArchive(db, toDay(now + DAY_MS), zoneIds.length === 0 ? null : zoneIds);
    const moving = firstMovingDay(now);
    const next = days.find(({ day }) => day >= moving)?.day;
    return {
      ...archive,
      zones: zones.map(toArchivedZone),
      notUploaded: archive.bucket === null ? 0 : (await listNotUploaded(db)).length,
      waiting: days.filter(({ day }) => day < moving),
      nextDay: next === undefined ? null : { day: next, settledAt: toIso(settledAt(next)) },
    };
  },
});

export function toArchivedZone(zone: ZoneArchive): z.infer<typeof ArchivedZone> {
  return { ...zone, checkedAt: toIso(zone.checkedAt) };
}

function toRows({ zones }: ArchiveStatus): string[][] {
  return zones.map(({ zoneId, days, firstDay, lastDay, events, eventBytes, recordBytes, checkedAt }) => [
    String(zoneId),
    formatWhole(days),
    `${firstDay} to ${lastDay}`,
    formatWhole(events),
    formatBytes(eventBytes),
    formatBytes(recordBytes),
    `${showTime(checkedAt)} UTC`,
  ]);
}

function describeWaiting({ waiting }: ArchiveStatus): string {
  if (waiting.length === 0) return "no day waits for the archive\n";
  const shown = waiting
    .slice(0, MOST_WAITING)
    .map(
      ({ zoneId, day, waitingFor }) =>
        `  ${day}, zone ${zoneId}: ${waitingFor === null ? "next" : `waits for ${waitingFor}`}\n`,
    );
  const more =
    waiting.length > MOST_WAITING ? `  and ${formatWhole(waiting.length - MOST_WAITING)} more\n` : "";
  return `${many(waiting.length, "day")} not in the archive yet:\n${shown.join("")}${more}`;
}

function describeNext({ isWritten, nextDay, zones }: ArchiveStatus): string {
  if (!isWritten)
    return "no day is archived: set LONGWATCH_ARCHIVE_DIR to a folder that lasts, or LONGWATCH_ARCHIVE_URL to a bucket\n";
  if (nextDay === null)
    return zones.length === 0 ? "no event is stored yet, so there is no day to archive\n" : "";
  const { day, settledAt: at } = nextDay;
  return `${day} can be archived from ${showTime(at)} UTC on, 73 hours after its end: until then it can change\n`;
}

function describePlace({ folder, bucket, notUploaded }: ArchiveStatus): string {
  if (bucket === null) return `folder: ${toLine(folder, 1_000)}\n`;
  const waiting = notUploaded === 0 ? "" : `; ${many(notUploaded, "file")} not in it yet`;
  return `bucket: ${toLine(bucket, 1_000)}${waiting}\ncache: ${toLine(folder, 1_000)}\n`;
}

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
