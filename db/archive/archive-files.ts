import { and, eq, isNotNull, isNull, lt, lte, or, type SQL, sql } from "drizzle-orm";
import { readArchivePath } from "#model/archive-layout.ts";
import type { NamedFile } from "#model/archive-storage.ts";
import type { ArchiveKind } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { archiveFiles } from "../schema/archive.ts";

/** A row of the manifest, with everything that it says of a file. */
export type ManifestRow = typeof archiveFiles.$inferSelect;

/** A file that has just been written and verified. */
export interface NewArchiveFile {
  readonly zoneId: number;
  readonly day: string;
  readonly kind: ArchiveKind;
  readonly path: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly rows: number;
  /** Epoch ms; null in a file without rows. */
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  readonly hours: readonly number[];
  readonly sum: bigint;
  readonly format: number;
  /** Whether the file is in the bucket. */
  readonly isUploaded: boolean;
}

/**
 * Makes these files the valid ones of their zone, day and kind. The files that they replace are retired. From the
 * commit on searches read the new ones.
 */
export async function enterFiles(tx: Queryable, files: readonly NewArchiveFile[]): Promise<void> {
  for (const { firstAt, lastAt, sum, hours, isUploaded, ...file } of files) {
    await retireFiles(tx, file);
    const values = {
      ...file,
      hours: [...hours],
      firstAt: firstAt === null ? null : new Date(firstAt),
      lastAt: lastAt === null ? null : new Date(lastAt),
      sum: String(sum),
      uploadedAt: isUploaded ? sql`now()` : null,
    };
    await tx
      .insert(archiveFiles)
      .values(values)
      // A day that is written again may have the same content, and so the same name, as before.
      .onConflictDoUpdate({
        target: [archiveFiles.zoneId, archiveFiles.day, archiveFiles.kind, archiveFiles.sha256],
        set: {
          ...values,
          writtenAt: sql`now()`,
          checkedAt: sql`now()`,
          retiredAt: null,
          damagedAt: null,
          damage: null,
        },
      });
  }
}

/** Retires the valid file of a zone, day and kind. Returns whether there was one. */
export async function retireFiles(
  tx: Queryable,
  { zoneId, day, kind }: Pick<ManifestRow, "zoneId" | "day" | "kind">,
): Promise<boolean> {
  const retired = await tx
    .update(archiveFiles)
    .set({ retiredAt: sql`now()` })
    .where(
      and(
        eq(archiveFiles.zoneId, zoneId),
        eq(archiveFiles.day, day),
        eq(archiveFiles.kind, kind),
        isNull(archiveFiles.retiredAt),
      ),
    )
    .returning({ path: archiveFiles.path });
  return retired.length > 0;
}

/** Returns the number of valid files; `uploaded`: of those in the bucket. */
export async function countValidFiles(db: Queryable, scope: "all" | "uploaded"): Promise<number> {
  const isUploaded = scope === "all" ? undefined : isNotNull(archiveFiles.uploadedAt);
  return db.$count(archiveFiles, and(isNull(archiveFiles.retiredAt), isUploaded));
}

/** Returns the valid files that are only in the folder, oldest day first. */
export async function listNotUploaded(db: Queryable): Promise<ManifestRow[]> {
  return db
    .select()
    .from(archiveFiles)
    .where(and(isNull(archiveFiles.retiredAt), isNull(archiveFiles.uploadedAt)))
    .orderBy(archiveFiles.day, archiveFiles.zoneId, archiveFiles.kind);
}

/** Notes that a file is in the bucket. */
export async function markUploaded(db: Queryable, { path, sha256 }: NamedFile): Promise<void> {
  await db
    .update(archiveFiles)
    .set({ uploadedAt: sql`now()` })
    .where(and(eq(archiveFiles.path, path), eq(archiveFiles.sha256, sha256)));
}

interface FileScope {
  /** Null: every zone, as without it. */
  readonly zoneId?: number | null;
  readonly day?: string;
  readonly kind?: ArchiveKind;
}

/** Returns the valid files of a zone, a day and a kind, oldest day first. What is left out is not restricted. */
export async function listValidFiles(
  db: Queryable,
  { zoneId = null, day, kind }: FileScope = {},
): Promise<ManifestRow[]> {
  return db
    .select()
    .from(archiveFiles)
    .where(
      and(
        isNull(archiveFiles.retiredAt),
        zoneId === null ? undefined : eq(archiveFiles.zoneId, zoneId),
        day === undefined ? undefined : eq(archiveFiles.day, day),
        kind === undefined ? undefined : eq(archiveFiles.kind, kind),
      ),
    )
    .orderBy(archiveFiles.day, archiveFiles.zoneId, archiveFiles.kind);
}

/** Retires the files of days past their retention; days are `yyyy-mm-dd`. Returns how many. */
export async function retireExpired(
  db: Queryable,
  { eventsBefore, recordsBefore }: { eventsBefore: string; recordsBefore: string },
): Promise<number> {
  const { day, kind, retiredAt } = archiveFiles;
  const isExpired = or(lt(day, eventsBefore), and(eq(kind, "records"), lt(day, recordsBefore)));
  const { rowCount } = await db
    .update(archiveFiles)
    .set({ retiredAt: sql`now()` })
    .where(and(isNull(retiredAt), isExpired));
  return rowCount ?? 0;
}

/** Returns the files that were retired at least `ms` ago: of a zone, and of days up to one (`yyyy-mm-dd`), if given. */
export async function listRetired(
  db: Queryable,
  ms: number,
  { zoneId = null, through }: { readonly zoneId?: number | null; readonly through?: string } = {},
): Promise<ManifestRow[]> {
  return db
    .select()
    .from(archiveFiles)
    .where(
      and(
        sql`${archiveFiles.retiredAt} <= now() - ${ms}::float8 * interval '1 millisecond'`,
        zoneId === null ? undefined : eq(archiveFiles.zoneId, zoneId),
        through === undefined ? undefined : lte(archiveFiles.day, through),
      ),
    )
    .orderBy(archiveFiles.day, archiveFiles.zoneId, archiveFiles.kind);
}

/**
 * Returns the valid file that has replaced a file; null if the file itself is valid, or none has replaced it. An erasure, new
 * pseudonyms and new facts write each row to the same place as before, so a reader can go on with the new file.
 */
export async function findReplacement(db: Queryable, file: NamedFile): Promise<ManifestRow | null> {
  const place = readArchivePath(file.path);
  if (place === null) return null;
  const [valid] = await listValidFiles(db, place);
  return valid === undefined || valid.path === file.path ? null : valid;
}

/** Deletes the rows of retired files. A file that has become valid again meanwhile keeps its row. */
export async function forgetFiles(db: Queryable, paths: readonly string[]): Promise<void> {
  await db.delete(archiveFiles).where(and(isOneOf(paths), isNotNull(archiveFiles.retiredAt)));
}

/** Notes that these files were compared with their hashes just now, and equal them. */
export async function markChecked(db: Queryable, paths: readonly string[]): Promise<void> {
  await db
    .update(archiveFiles)
    .set({ checkedAt: sql`now()`, damagedAt: null, damage: null })
    .where(isOneOf(paths));
}

/** Returns the size of all valid files together. */
export async function sumValidBytes(db: Queryable): Promise<number> {
  const [row] = await db
    .select({ bytes: sql<number>`coalesce(sum(${archiveFiles.bytes}), 0)::float8` })
    .from(archiveFiles)
    .where(isNull(archiveFiles.retiredAt));
  return row?.bytes ?? 0;
}

/**
 * Returns the valid files that were last checked at least `ms` ago, the longest ago first. Files that are known to be
 * damaged come last: many of them must not keep the others from being checked.
 */
export async function listUnchecked(db: Queryable, ms: number): Promise<NamedFile[]> {
  return db
    .select({ path: archiveFiles.path, sha256: archiveFiles.sha256, bytes: archiveFiles.bytes })
    .from(archiveFiles)
    .where(
      and(
        isNull(archiveFiles.retiredAt),
        sql`${archiveFiles.checkedAt} <= now() - ${ms}::float8 * interval '1 millisecond'`,
      ),
    )
    .orderBy(isNotNull(archiveFiles.damagedAt), archiveFiles.checkedAt, archiveFiles.path);
}

/** The paths among these that a manifest row names, valid or retired. */
export async function listNamed(db: Queryable, paths: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await db.select({ path: archiveFiles.path }).from(archiveFiles).where(isOneOf(paths));
  return new Set(rows.map(({ path }) => path));
}

function isOneOf(paths: readonly string[]): SQL {
  return sql`${archiveFiles.path} = any(${sql.param(paths)}::text[])`;
}
