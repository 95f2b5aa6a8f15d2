import type { Queryable } from "../client.ts";
import { quarantinedEntries } from "../schema/quarantined-entries.ts";

export interface NewQuarantinedEntry {
  readonly route: "search" | "list";
  /** The UTC day that was asked for, `yyyy-mm-dd`; null on the search route. */
  readonly day: string | null;
  readonly reason: string;
  readonly raw: Buffer;
}

/** Sets entries aside, each content once per zone; returns how many were not there before. */
export async function quarantineEntries(
  db: Queryable,
  zoneId: number,
  entries: readonly NewQuarantinedEntry[],
): Promise<number> {
  if (entries.length === 0) return 0;
  const added = await db
    .insert(quarantinedEntries)
    .values(entries.map((entry) => ({ zoneId, ...entry })))
    .onConflictDoNothing()
    .returning({ id: quarantinedEntries.id });
  return added.length;
}
