import { createHash } from "node:crypto";
import { sql } from "drizzle-orm";
import type { EventRoute } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { quarantinedEntries } from "../schema/quarantined-entries.ts";

/**
 * A statement takes 65,535 parameters at most. After a change of the platform's format a whole page may be
 * unreadable.
 */
const ROWS_PER_STATEMENT = 1_000;

export interface NewQuarantinedEntry {
  readonly route: EventRoute;
  /** The UTC day of the request, `yyyy-mm-dd`; null on the search route. */
  readonly day: string | null;
  readonly reason: string;
  readonly raw: Buffer;
  /** When the entry was received, epoch ms; left out: now. */
  readonly receivedAt?: number;
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
    const rows = entries.slice(at, at + ROWS_PER_STATEMENT).map(({ receivedAt, ...entry }) => ({
      zoneId,
      ...entry,
      ...(receivedAt === undefined ? {} : { receivedAt: new Date(receivedAt) }),
    }));
    const inserted = await db
      .insert(quarantinedEntries)
      .values(rows)
      .onConflictDoNothing()
      .returning({ id: quarantinedEntries.id });
    added += inserted.length;
  }
  return added;
}

/** Returns whether one of these entries was quarantined for this reason at `beforeMs` or earlier. */
export async function wasQuarantined(
  db: Queryable,
  zoneId: number,
  raws: readonly Buffer[],
  { reason, beforeMs }: { reason: string; beforeMs: number },
): Promise<boolean> {
  const hashes = raws.map((raw) => createHash("sha256").update(raw).digest());
  const { rowCount } = await db.execute(sql`
    select from ${quarantinedEntries} where ${quarantinedEntries.zoneId} = ${zoneId}
      and ${quarantinedEntries.rawHash} = any(${sql.param(hashes)}::bytea[])
      and ${quarantinedEntries.reason} = ${reason} and ${quarantinedEntries.receivedAt} <= ${new Date(beforeMs)} limit 1`);
  return (rowCount ?? 0) > 0;
}

/** Deletes the entries of a zone that were quarantined for this reason before `beforeMs`. Returns how many there were. */
export async function dropQuarantined(
  db: Queryable,
  zoneId: number,
  { reason, beforeMs }: { reason: string; beforeMs: number },
): Promise<number> {
  const { zoneId: zone, reason: why, receivedAt } = quarantinedEntries;
  const { rowCount } = await db
    .delete(quarantinedEntries)
    .where(sql`${zone} = ${zoneId} and ${why} = ${reason} and ${receivedAt} < ${new Date(beforeMs)}`);
  return rowCount ?? 0;
}
