import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import type { ArchiveFile } from "./archived-days.ts";

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
  await db.execute(sql`
    update archive_files
    set damage = ${damage}, damaged_at = case when ${damage}::text is null then null else coalesce(damaged_at, now()) end
    where path = ${path} and sha256 = ${sha256} and damage is distinct from ${damage}`);
}

/** Returns the valid files that are missing or damaged, the longest known first. */
export async function readDamagedFiles(db: Queryable): Promise<DamagedFile[]> {
  const { rows } = await db.execute<DamagedFile & Record<string, unknown>>(sql`
    select zone_id as "zoneId", day::text, path, damage, floor(extract(epoch from damaged_at) * 1000)::float8 as "damagedAt"
    from archive_files where damaged_at is not null and retired_at is null order by damaged_at, zone_id, day`);
  return rows;
}
