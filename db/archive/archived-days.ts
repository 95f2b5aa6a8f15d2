import { sql } from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import { clampTime, DAY_MS } from "#lib/units.ts";
import type { NamedFile } from "#model/archive-storage.ts";
import { toDay } from "#model/horizon.ts";
import type { Span } from "#model/span.ts";
import type { Queryable } from "../client.ts";
import { archiveFiles } from "../schema/archive-files.ts";

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
  const isReported = (damagedAt: PgColumn) => sql<boolean>`${damagedAt} is not null`;
  const found = await tx
    .select({
      day: e.day,
      rows: e.rows,
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
      sql`${e.zoneId} = ${zoneId}::integer and ${e.day} between ${first}::date and ${end}::date
        and ${e.kind} = 'events' and ${e.retiredAt} is null`,
    )
    .orderBy(e.day);
  return found.flatMap(({ day, rows, events, records }) => {
    const startsAt = Date.parse(`${day}T00:00:00Z`);
    if (startsAt >= to) return [];
    return {
      from: startsAt,
      to: startsAt + DAY_MS,
      rows,
      events: { day, ...events },
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
