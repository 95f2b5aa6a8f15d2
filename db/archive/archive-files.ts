import { and, eq, isNull, sql } from "drizzle-orm";
import type { ArchiveKind } from "../../src/model/archive-layout.ts";
import type { Queryable } from "../client.ts";
import { archiveFiles } from "../schema/archive-files.ts";

export type ArchiveFile = typeof archiveFiles.$inferSelect;

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
}

/**
 * Makes these files the valid ones of their zone, day and kind. The files that they replace are retired. From the commit on
 * searches read the new ones.
 */
export async function enterFiles(tx: Queryable, files: readonly NewArchiveFile[]): Promise<void> {
  for (const { firstAt, lastAt, sum, hours, ...file } of files) {
    await retireFiles(tx, file);
    const values = {
      ...file,
      hours: [...hours],
      firstAt: firstAt === null ? null : new Date(firstAt),
      lastAt: lastAt === null ? null : new Date(lastAt),
      sum: String(sum),
    };
    await tx
      .insert(archiveFiles)
      .values(values)
      // A day that is written again may have the same content, and so the same name, as before.
      .onConflictDoUpdate({
        target: [archiveFiles.zoneId, archiveFiles.day, archiveFiles.kind, archiveFiles.sha256],
        set: { ...values, writtenAt: sql`now()`, checkedAt: sql`now()`, retiredAt: null },
      });
  }
}

/** Retires the valid file of a zone, day and kind. Returns whether there was one. */
export async function retireFiles(
  tx: Queryable,
  { zoneId, day, kind }: Pick<ArchiveFile, "zoneId" | "day" | "kind">,
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

/** Returns the valid files of a zone's day. */
export async function readDayFiles(db: Queryable, zoneId: number, day: string): Promise<ArchiveFile[]> {
  return db
    .select()
    .from(archiveFiles)
    .where(and(eq(archiveFiles.zoneId, zoneId), eq(archiveFiles.day, day), isNull(archiveFiles.retiredAt)));
}
