import { type SQL, sql } from "drizzle-orm";
import type { ArchiveKind } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { isStored } from "./hot-days.ts";

/** The days, events and bytes of a zone in the archive. Days are `yyyy-mm-dd`. */
export interface ZoneArchive {
  readonly zoneId: number;
  readonly days: number;
  readonly firstDay: string;
  readonly lastDay: string;
  readonly events: number;
  readonly eventBytes: number;
  readonly recordBytes: number;
  /** When the file that was checked longest ago was compared with its hash; epoch ms. */
  readonly checkedAt: number;
  /** Files that are missing or differ from their hash. */
  readonly damagedFiles: number;
}

/** Returns the archive of each of these zones that has archive days; null means every zone. */
export async function readZoneArchives(
  db: Queryable,
  zoneIds: readonly number[] | null = null,
): Promise<ZoneArchive[]> {
  const { rows } = await db.execute<ZoneArchive & Record<string, unknown>>(sql`
    select zone_id as "zoneId", (count(*) filter (where kind = 'events'))::integer as days, min(day)::text as "firstDay",
      max(day)::text as "lastDay", coalesce(sum(rows) filter (where kind = 'events'), 0)::float8 as events,
      coalesce(sum(bytes) filter (where kind = 'events'), 0)::float8 as "eventBytes",
      coalesce(sum(bytes) filter (where kind = 'records'), 0)::float8 as "recordBytes",
      floor(extract(epoch from min(checked_at)) * 1000)::float8 as "checkedAt",
      (count(*) filter (where damaged_at is not null))::integer as "damagedFiles"
    from archive_files where retired_at is null ${ofZones(zoneIds)} group by zone_id order by zone_id`);
  return rows;
}

function ofZones(zoneIds: readonly number[] | null): SQL {
  return zoneIds === null ? sql`` : sql`and zone_id = any(${sql.param([...zoneIds])}::integer[])`;
}

/** A file of an archive day as people see it; times in epoch ms. */
interface ReportedFile {
  readonly kind: ArchiveKind;
  /** Relative to the archive folder. */
  readonly path: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly rows: number;
  readonly writtenAt: number;
  readonly checkedAt: number;
  /** The problem of a missing or damaged file; null if the last check was good. */
  readonly damage: string | null;
}

export interface ReportedDay {
  readonly zoneId: number;
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
  /** Whether Postgres still has the day's events, too. */
  readonly isInPostgres: boolean;
  readonly files: readonly ReportedFile[];
}

/** Returns the archive days from `from` to before `to` (`yyyy-mm-dd`), oldest first. */
export async function listReportedDays(
  db: Queryable,
  { zoneIds, from, to }: { zoneIds: readonly number[] | null; from: string; to: string },
): Promise<ReportedDay[]> {
  const ms = (column: string) => sql.raw(`floor(extract(epoch from ${column}) * 1000)::float8`);
  const { rows } = await db.execute<ReportedDay & Record<string, unknown>>(sql`
    select zone_id as "zoneId", day::text, ${isStored(sql`zone_id`, sql`day`)} as "isInPostgres",
      jsonb_agg(jsonb_build_object('kind', kind, 'path', path, 'sha256', sha256, 'bytes', bytes, 'rows', rows,
        'writtenAt', ${ms("written_at")}, 'checkedAt', ${ms("checked_at")}, 'damage', damage) order by kind) as files
    from archive_files
    where retired_at is null and day >= ${from}::date and day < ${to}::date ${ofZones(zoneIds)}
    group by zone_id, day order by day, zone_id`);
  return rows;
}
