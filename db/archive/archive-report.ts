import { and, gte, isNull, lt, type SQL, sql } from "drizzle-orm";
import type { PgColumn } from "drizzle-orm/pg-core";
import type { ArchiveKind } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive-files.ts";
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
export function readZoneArchives(
  db: Queryable,
  zoneIds: readonly number[] | null = null,
): Promise<ZoneArchive[]> {
  const { zoneId, day, kind, rows, bytes, checkedAt, damagedAt, retiredAt } = archiveFiles;
  const total = (column: PgColumn, of: typeof kind._.data) =>
    sql<number>`coalesce(sum(${column}) filter (where ${kind} = ${of}), 0)::float8`;
  return db
    .select({
      zoneId,
      days: sql<number>`(count(*) filter (where ${kind} = 'events'))::integer`,
      firstDay: sql<string>`min(${day})::text`,
      lastDay: sql<string>`max(${day})::text`,
      events: total(rows, "events"),
      eventBytes: total(bytes, "events"),
      recordBytes: total(bytes, "records"),
      checkedAt: sql<number>`floor(${epochMs(sql`min(${checkedAt})`)})`,
      damagedFiles: sql<number>`(count(*) filter (where ${damagedAt} is not null))::integer`,
    })
    .from(archiveFiles)
    .where(and(isNull(retiredAt), ofZones(zoneIds)))
    .groupBy(zoneId)
    .orderBy(zoneId);
}

function ofZones(zoneIds: readonly number[] | null): SQL | undefined {
  if (zoneIds === null) return undefined;
  return sql`${archiveFiles.zoneId} = any(${sql.param([...zoneIds])}::integer[])`;
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
export function listReportedDays(
  db: Queryable,
  { zoneIds, from, to }: { zoneIds: readonly number[] | null; from: string; to: string },
): Promise<ReportedDay[]> {
  const f = archiveFiles;
  const ms = (column: PgColumn) => sql`floor(${epochMs(column)})`;
  return db
    .select({
      zoneId: f.zoneId,
      day: f.day,
      isInPostgres: sql<boolean>`${isStored(f.zoneId, f.day)}`,
      files: sql<ReportedFile[]>`jsonb_agg(jsonb_build_object('kind', ${f.kind}, 'path', ${f.path},
        'sha256', ${f.sha256}, 'bytes', ${f.bytes}, 'rows', ${f.rows}, 'writtenAt', ${ms(f.writtenAt)},
        'checkedAt', ${ms(f.checkedAt)}, 'damage', ${f.damage}) order by ${f.kind})`,
    })
    .from(f)
    .where(and(isNull(f.retiredAt), gte(f.day, from), lt(f.day, to), ofZones(zoneIds)))
    .groupBy(f.zoneId, f.day)
    .orderBy(f.day, f.zoneId);
}
