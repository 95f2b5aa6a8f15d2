import { and, eq, isNull, lt, sql } from "drizzle-orm";
import { toDay } from "#model/horizon.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive-files.ts";

/**
 * Returns the start of the first day of a zone (epoch ms) from which on all minutes are kept; null if all are. Minutes
 * of old archive days, those before `keptFrom` (epoch ms), are deleted; hours and days are not.
 */
export async function readMinutesFrom(
  db: Queryable,
  zoneId: number,
  keptFrom: number,
): Promise<number | null> {
  const { day, kind, retiredAt } = archiveFiles;
  const [row] = await db
    .select({ at: epochMs(sql<string | null>`(max(${day}) + 1)::timestamp at time zone 'UTC'`) })
    .from(archiveFiles)
    .where(
      and(eq(archiveFiles.zoneId, zoneId), lt(day, toDay(keptFrom)), eq(kind, "events"), isNull(retiredAt)),
    );
  return row?.at ?? null;
}
