import type { Command } from "commander";
import { describeBucket } from "#adapters/storage/describe-bucket.ts";
import type { Config } from "#config/config.ts";
import { listNotUploaded } from "#db/archive/archive-files.ts";
import { readZoneArchives, type ZoneArchive } from "#db/archive/archive-report.ts";
import { type DayToArchive, listDaysToArchive } from "#db/archive/days-to-archive.ts";
import { firstMovingDay, settledAt } from "#jobs/archive/archive-days.ts";
import { formatBytes } from "#lib/disk-space.ts";
import { formatWhole, many } from "#lib/format.ts";
import { showTime } from "#lib/show-time.ts";
import { DAY_MS } from "#lib/units.ts";
import { toDay } from "#model/horizon.ts";
import { toIso } from "#operations/fields.ts";
import { writeOut } from "../edge/edge-io.ts";
import { writeJson } from "../edge/write-json.ts";
import { withStore } from "../store/open-store.ts";
import { readServiceClock } from "../store/service-clock.ts";
import { type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { drawTable } from "../terminal/draw-table.ts";
import { pickPaint } from "../terminal/pick-paint.ts";
import { knownZones } from "./with-archive.ts";

const MOST_WAITING = 20;

const HELP = `
Shows what each zone has in the archive, the days that will be written next or what they wait for, and when the next day can be
written. The command reads only the database; archive verify reads the files.

Examples:
  npm run -s longwatch -- archive status
  npm run -s longwatch -- archive status --json`;

/** `longwatch archive status`. */
export function statusCommand(readConfig: () => Config, io: StoreIo): Command {
  return storeCommand("status", "Show what is in the archive, and what waits for it.", HELP, io)
    .option("--json", "print JSON")
    .action(
      storeAction<{ readonly json?: true }>(io, async (flags, read) => {
        read.finish();
        const config = readConfig();
        const { zones, days, moving, notUploaded } = await withStore(config, async (database) => {
          const clock = await readServiceClock(database, io.clock);
          return {
            zones: await readZoneArchives(database.db),
            notUploaded: config.archive.bucket === null ? 0 : (await listNotUploaded(database.db)).length,
            days: await listDaysToArchive(database.db, toDay(clock() + DAY_MS), knownZones(config)),
            moving: firstMovingDay(clock()),
          };
        });
        const waiting = days.filter(({ day }) => day < moving);
        const next = days.find(({ day }) => day >= moving)?.day ?? null;
        const { folder, hotDays, bucket, isWritten } = config.archive;
        const bucketPlace = bucket === null ? null : describeBucket(bucket);
        if (flags.json === true) {
          const dated = zones.map((zone) => ({ ...zone, checkedAt: toIso(zone.checkedAt) }));
          const nextDay = next === null ? null : { day: next, settledAt: toIso(settledAt(next)) };
          const place = { folder, bucket: bucketPlace, isWritten, hotDays };
          await writeJson(io.stdout, { ...place, zones: dated, notUploaded, waiting, nextDay });
        } else
          await writeOut(
            io.stdout,
            [
              describeZones(zones, io),
              describeWaiting(waiting),
              describeNext(next, isWritten, zones.length === 0),
              describePlace({ folder, place: bucketPlace, notUploaded }),
            ].join(""),
          );
      }),
    );
}

function describeZones(zones: readonly ZoneArchive[], io: StoreIo): string {
  if (zones.length === 0) return "no day is in the archive\n";
  const rows = zones.map(
    ({ zoneId, days, firstDay, lastDay, events, eventBytes, recordBytes, checkedAt }) => [
      String(zoneId),
      formatWhole(days),
      `${firstDay} to ${lastDay}`,
      formatWhole(events),
      formatBytes(eventBytes),
      formatBytes(recordBytes),
      `${showTime(checkedAt)} UTC`,
    ],
  );
  return drawTable(
    ["zone", "days", "from", "events", "event files", "record files", "checked"],
    rows,
    pickPaint(io),
  );
}

function describePlace({ folder, place, notUploaded }: Place): string {
  if (place === null) return `folder: ${folder}\n`;
  const waiting = notUploaded === 0 ? "" : `; ${many(notUploaded, "file")} not in it yet`;
  return `bucket: ${place}${waiting}\ncache: ${folder}\n`;
}

function describeNext(next: string | null, isWritten: boolean, isEmpty: boolean): string {
  if (!isWritten)
    return "no day is archived: set LONGWATCH_ARCHIVE_DIR to a folder that lasts, or LONGWATCH_ARCHIVE_URL to a bucket\n";
  if (next === null) return isEmpty ? "no event is stored yet, so there is no day to archive\n" : "";
  return `${next} can be archived from ${showTime(settledAt(next))} UTC on, 73 hours after its end: until then it can change\n`;
}

interface Place {
  readonly folder: string;
  /** The bucket; null if there is none. */
  readonly place: string | null;
  readonly notUploaded: number;
}

function describeWaiting(waiting: readonly DayToArchive[]): string {
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
