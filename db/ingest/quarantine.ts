import type { Queryable } from "../client.ts";
import { quarantinedEntries } from "../schema/quarantined-entries.ts";

/** A statement takes 65,535 parameters at most, and after a change of the platform's a whole page may be unreadable. */
const ROWS_PER_STATEMENT = 1_000;

export interface NewQuarantinedEntry {
  readonly route: "search" | "list";
  /** The UTC day that was asked for, `yyyy-mm-dd`; null on the search route. */
  readonly day: string | null;
  readonly reason: string;
  readonly raw: Buffer;
  /** Nobody could check it for erased addresses; `judge-held` does. */
  readonly isHeld?: boolean;
}

/** Sets entries aside, each content once per zone; returns how many were not there before. */
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
