import type { Queryable } from "../client.ts";
import { quarantinedEntries } from "../schema/quarantined-entries.ts";

/**
 * A statement takes 65,535 parameters at most. After a change of the platform's format a whole page may be
 * unreadable.
 */
const ROWS_PER_STATEMENT = 1_000;

export interface NewQuarantinedEntry {
  readonly route: "search" | "list";
  /** The UTC day of the request, `yyyy-mm-dd`; null on the search route. */
  readonly day: string | null;
  readonly reason: string;
  readonly raw: Buffer;
  /** True if the entry could not be checked for erased addresses. `judge-held` checks it later. */
  readonly isHeld?: boolean;
}

/** Quarantines entries, each content once per zone. Returns how many were new. */
export async function quarantineEntries(
  db: Queryable,
  zoneId: number,
  entries: readonly NewQuarantinedEntry[],
): Promise<number> {
  let added = 0;
  for (let at = 0; at < entries.length; at += ROWS_PER_STATEMENT) {
    const rows = entries.slice(at, at + ROWS_PER_STATEMENT).map((entry) => ({ zoneId, ...entry }));
    const inserted = await db
      .insert(quarantinedEntries)
      .values(rows)
      .onConflictDoNothing()
      .returning({ id: quarantinedEntries.id });
    added += inserted.length;
  }
  return added;
}
