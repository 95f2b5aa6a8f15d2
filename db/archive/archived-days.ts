/** The days of the archive and their files. */
import { and, eq, getTableName, gt, gte, isNull, lt, type SQL, sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import { formatIso } from "#lib/format.ts";
import { clampTime, DAY_MS } from "#lib/units.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import type { NamedFile } from "#model/archive-storage.ts";
import { type Span, toDay } from "#model/horizon.ts";
import type { ArchiveKind, SearchSource } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive.ts";
import { coverageWindows } from "../schema/coverage.ts";
import { wafEvents } from "../schema/events.ts";
import { isStored } from "./hot-days.ts";
import { toMoment } from "./search-condition.ts";

const e = alias(archiveFiles, "e");
const r = alias(archiveFiles, "r");

/** A valid file of the manifest. */
export interface ArchiveFile extends NamedFile {
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
  /** Version of the file's columns. */
  readonly format: number;
  /** Whether it was reported to be missing or damaged, and nobody has found it whole since. */
  readonly isReported?: boolean;
  /** Absolute path of a copy of hours that are in Postgres, which `readKeptHours` has checked. The manifest does not name it. */
  readonly kept?: string;
}

/** A day of a zone that its file answers for, whether or not Postgres still has its events. */
export interface ArchivedDay extends Span {
  readonly zoneId: number;
  /** All zones of a kept file that has several. */
  readonly zoneIds?: readonly number[];
  /** True for a copy of archive days. */
  readonly isCopy?: boolean;
  /** True for an archive day whose file may be joined with those of other zones. */
  readonly isSmall?: boolean;
  readonly events: ArchiveFile;
  readonly rows: number;
  /** Null if the day's records are past their retention. Row n belongs to row n of the events. */
  readonly records: ArchiveFile | null;
}

/** If a search reads several zones, files of the same hours with fewer events are joined: to open each takes longer than to read it. */
export const JOINED_EVENTS = 10_000;

/** Returns the condition that an events file may be joined with others. */
export function isSmall({ rows, format }: Record<"rows" | "format", PgColumn>): SQL<boolean> {
  return sql`(${rows} < ${JOINED_EVENTS} and ${format} = ${ARCHIVE_FORMAT})`;
}

/** Returns whether files of the archive are among these. Kept hours are events of the database. */
export function sourceOf(days: readonly ArchivedDay[]): SearchSource {
  return days.some(({ events, isCopy }) => events.kept === undefined || isCopy) ? "archive" : "events";
}

/** Returns the condition that a UTC day has a part of the span. */
export function isDayOf(day: PgColumn | SQL, { from, to }: Span): SQL {
  return sql`${day} between ${toDay(clampTime(from))}::date and ${toDay(clampTime(to))}::date`;
}

/** Returns the CTEs `p`, the partitions of events, and `days`, those days of zones in a span that are in Postgres and in no file. */
export function openDays(zoneIds: readonly number[], window: Span): SQL {
  const zones = sql`${sql.param([...zoneIds])}::integer[]`;
  return sql`p as materialized (
      select i.inhrelid as oid, to_date(right(r.relname, 8), 'YYYYMMDD') as day
      from pg_inherits i join pg_class r on r.oid = i.inhrelid
      where i.inhparent = ${getTableName(wafEvents)}::regclass offset 0),
    days as materialized (
      select zone, day, oid, day::timestamp at time zone 'UTC' as from_at from p cross join unnest(${zones}) as zone
      where ${isDayOf(sql`day`, window)} and (zone, day) not in (
        select ${e.zoneId}, ${e.day} from ${archiveFiles} ${e}
        where ${e.zoneId} = any(${zones}) and ${e.day} >= (select min(day) from p) and ${e.kind} = 'events' and ${e.retiredAt} is null))`;
}

/**
 * Returns the archive days of a zone, or of several, that a span touches, oldest first, as this transaction sees the manifest.
 * A small file is left out if its day is one of `joined`, because a joined file has its events.
 */
export async function readArchivedDays(
  tx: Queryable,
  zoneIds: number | readonly number[],
  window: Span,
  joined: readonly string[] = [],
): Promise<ArchivedDay[]> {
  const isReported = (damagedAt: PgColumn) => sql<boolean>`${damagedAt} is not null`;
  const isLeft =
    joined.length === 0
      ? sql``
      : sql` and not (${e.day} = any(${sql.param([...joined])}::date[]) and ${isSmall(e)})`;
  const found = await tx
    .select({
      zoneId: e.zoneId,
      day: e.day,
      rows: e.rows,
      isSmall: isSmall(e),
      events: {
        path: e.path,
        sha256: e.sha256,
        bytes: e.bytes,
        format: e.format,
        isReported: isReported(e.damagedAt),
      },
      records: {
        path: r.path,
        sha256: r.sha256,
        bytes: r.bytes,
        format: r.format,
        isReported: isReported(r.damagedAt),
      },
    })
    .from(e)
    .leftJoin(
      r,
      sql`${r.zoneId} = ${e.zoneId} and ${r.day} = ${e.day} and ${r.kind} = 'records' and ${r.retiredAt} is null`,
    )
    .where(
      sql`${e.zoneId} = any(${sql.param([zoneIds].flat())}::integer[]) and ${isDayOf(e.day, window)}
        and ${e.kind} = 'events' and ${e.retiredAt} is null${isLeft}`,
    )
    .orderBy(e.day, e.zoneId);
  return found.flatMap(({ zoneId, day, rows, isSmall, events, records }) => {
    const startsAt = Date.parse(`${day}T00:00:00Z`);
    if (startsAt >= window.to) return [];
    return {
      zoneId,
      from: startsAt,
      to: startsAt + DAY_MS,
      rows,
      isSmall,
      events: { day, ...events },
      records: records === null ? null : { day, ...records },
    };
  });
}

/** Returns how many archived events the days of a span have, whole days counted. */
export async function countArchived(
  db: Queryable,
  zoneIds: number | readonly number[],
  span: Span,
): Promise<number> {
  const [counted] = await db
    .select({ rows: sql<number>`coalesce(sum(${e.rows}), 0)::float8` })
    .from(e)
    .where(
      sql`${e.zoneId} = any(${sql.param([zoneIds].flat())}::integer[]) and ${isDayOf(e.day, span)}
        and ${e.day} < ${formatIso(clampTime(span.to))}::timestamptz at time zone 'UTC' and ${e.kind} = 'events' and ${e.retiredAt} is null`,
    );
  return counted?.rows ?? 0;
}

/** Returns what is left of a span without these parts of it. The parts are ascending and do not overlap. */
export function cutOut({ from, to }: Span, parts: readonly Span[]): Span[] {
  const spans: Span[] = [];
  let start = from;
  for (const part of parts) {
    if (part.from > start) spans.push({ from: start, to: Math.min(part.from, to) });
    start = Math.max(start, part.to);
  }
  if (to > start) spans.push({ from: start, to });
  return spans;
}

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

interface ReportedDay {
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

const w = alias(coverageWindows, "w");

/** Returns whether an event of the zone was ever stored, even if the zone is no longer copied. */
export async function hasStoredEvents(db: Queryable, zoneId: number): Promise<boolean> {
  const found = await db
    .select({ storedCount: w.storedCount })
    .from(w)
    .where(and(eq(w.zoneId, zoneId), gt(w.storedCount, 0)))
    .limit(1);
  return found.length > 0;
}

/**
 * Returns about how many events of a zone lie in [from, to), epoch ms. An hour that lies partly inside counts by its
 * share of the time.
 */
export async function countStoredEvents(
  db: Queryable,
  zoneIds: number | readonly number[],
  { from, to }: { readonly from: number; readonly to: number },
): Promise<number> {
  const found = await db.execute<{ events: number }>(sql`
    select coalesce(sum(${w.storedCount} * extract(epoch from
      least(${w.startsAt} + interval '1 hour', ${toMoment(to)})
        - greatest(${w.startsAt}, ${toMoment(from)})) / 3600), 0)::float8 as events
    from ${coverageWindows} ${w}
    where ${w.zoneId} = any(${sql.param([zoneIds].flat())}::integer[]) and ${w.startsAt} > ${toMoment(from)} - interval '1 hour'
      and ${w.startsAt} < ${toMoment(to)}`);
  return found.rows[0]?.events ?? 0;
}
