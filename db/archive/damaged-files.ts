import { and, isNotNull, isNull, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive-files.ts";
import type { ArchiveFile } from "./archived-days.ts";

const f = archiveFiles;

export interface DamagedFile {
  readonly zoneId: number;
  /** UTC, `yyyy-mm-dd`. */
  readonly day: string;
  readonly path: string;
  readonly damage: string;
  /** Epoch ms. */
  readonly damagedAt: number;
}

/** Notes that a file is missing or damaged, for the alert; null notes that it is not. */
export async function noteDamage(
  db: Queryable,
  { path, sha256 }: Pick<ArchiveFile, "path" | "sha256">,
  damage: string | null,
): Promise<void> {
  await db
    .update(f)
    .set({ damage, damagedAt: damage === null ? null : sql`coalesce(${f.damagedAt}, now())` })
    .where(sql`${f.path} = ${path} and ${f.sha256} = ${sha256} and ${f.damage} is distinct from ${damage}`);
}

/** Returns the valid files that are missing or damaged, the longest known first. */
export function readDamagedFiles(db: Queryable): Promise<DamagedFile[]> {
  return db
    .select({
      zoneId: f.zoneId,
      day: f.day,
      path: f.path,
      damage: sql<string>`${f.damage}`,
      damagedAt: sql<number>`floor(${epochMs(f.damagedAt)})`,
    })
    .from(f)
    .where(and(isNotNull(f.damagedAt), isNull(f.retiredAt)))
    .orderBy(f.damagedAt, f.zoneId, f.day);
}
