import { sql } from "drizzle-orm";
import { clampTime, DAY_MS } from "#lib/units.ts";
import type { NamedFile } from "#model/archive-storage.ts";
import { toDay } from "#model/horizon.ts";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";

/** A valid file of the manifest. */
export interface ArchiveFile extends NamedFile {
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
  /** Whether it was reported to be missing or damaged, and nobody has found it whole since. */
  readonly isReported?: boolean;
}

/** A day of a zone that its file answers for, whether or not Postgres still has its events. */
export interface ArchivedDay extends Span {
  readonly events: ArchiveFile;
  readonly rows: number;
  /** Null if the day's records are past their retention. Row n belongs to row n of the events. */
  readonly records: ArchiveFile | null;
}

/** Returns the archive days of a zone that a span touches, oldest first, as this transaction sees the manifest. */
export async function readArchivedDays(
  tx: Queryable,
  zoneId: number,
  { from, to }: Span,
): Promise<ArchivedDay[]> {
  const [first, end] = [from, to].map((ms) => toDay(clampTime(ms)));
  const found = await tx.execute<{
    day: string;
    path: string;
    sha256: string;
    bytes: number;
    isReported: boolean;
    rows: number;
    records: Omit<ArchiveFile, "day"> | null;
  }>(sql`
    select e.day::text, e.path, e.sha256, e.bytes::float8, e.damaged_at is not null as "isReported", e.rows,
      case when r.path is not null then jsonb_build_object('path', r.path, 'sha256', r.sha256, 'bytes', r.bytes,
        'isReported', r.damaged_at is not null) end as records
    from archive_files e
      left join archive_files r on r.zone_id = e.zone_id and r.day = e.day and r.kind = 'records' and r.retired_at is null
    where e.zone_id = ${zoneId}::integer and e.day between ${first}::date and ${end}::date and e.kind = 'events'
      and e.retired_at is null
    order by e.day`);
  return found.rows.flatMap(({ day, rows, records, ...file }) => {
    const startsAt = Date.parse(`${day}T00:00:00Z`);
    if (startsAt >= to) return [];
    return {
      from: startsAt,
      to: startsAt + DAY_MS,
      rows,
      events: { day, ...file },
      records: records === null ? null : { day, ...records },
    };
  });
}

/** Returns how many archived events the days of a span have, whole days counted. */
export async function countArchived(db: Queryable, zoneId: number, span: Span): Promise<number> {
  const days = await readArchivedDays(db, zoneId, span);
  return days.reduce((sum, { rows }) => sum + rows, 0);
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
