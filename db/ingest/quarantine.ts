import { createHash } from "node:crypto";
import { and, desc, eq, gt, inArray, lt, ne, sql } from "drizzle-orm";
import type { EventRoute } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { quarantinedEntries } from "../schema/ingest.ts";

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
  /** True if nothing could decide whether an erasure covers the entry. `judge-held` stores or checks it later. */
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

/** A quarantined entry without its bytes. */
export interface QuarantinedRow {
  readonly id: number;
  readonly zoneId: number;
  /** Epoch ms. */
  readonly receivedAt: number;
  readonly day: string | null;
  readonly route: EventRoute;
  readonly reason: string;
  readonly bytes: number;
  readonly isHeld: boolean;
}

const { id, zoneId: zone, receivedAt, day, route, reason, raw, isHeld } = quarantinedEntries;
const ROW = {
  id,
  zoneId: zone,
  receivedAt: epochMs(receivedAt),
  day,
  route,
  reason,
  isHeld,
  bytes: sql<number>`octet_length(${raw})`,
};

/** Returns quarantined entries of these zones (null: all) with an id below `before`, newest first. */
export function listQuarantined(
  db: Queryable,
  { zoneIds, before, limit }: { zoneIds: readonly number[] | null; before: number | null; limit: number },
): Promise<QuarantinedRow[]> {
  return db
    .select(ROW)
    .from(quarantinedEntries)
    .where(
      and(
        zoneIds === null ? undefined : inArray(zone, [...zoneIds]),
        before === null ? undefined : lt(id, before),
      ),
    )
    .orderBy(desc(id))
    .limit(limit);
}

export type WholeEntry = QuarantinedRow & { readonly raw: Buffer };

/**
 * Returns entries with their bytes: those of `ids`, or all of a zone with an id above `after`, in the order of their ids.
 * With `onlyHeld`, those among them that are held.
 */
export function readQuarantined(
  db: Queryable,
  asked: {
    zoneId?: number;
    ids?: readonly number[] | null;
    after?: number;
    limit?: number;
    onlyHeld?: boolean;
  },
): Promise<WholeEntry[]> {
  const { zoneId: ofZone, ids = null, after = 0, limit = ROWS_PER_STATEMENT, onlyHeld = false } = asked;
  return db
    .select({ ...ROW, raw })
    .from(quarantinedEntries)
    .where(
      and(
        gt(id, after),
        ofZone === undefined ? undefined : eq(zone, ofZone),
        ids === null ? undefined : inArray(id, [...ids]),
        onlyHeld ? eq(isHeld, true) : undefined,
      ),
    )
    .orderBy(id)
    .limit(limit);
}

/** Removes entries that were stored as events. */
export async function removeQuarantined(tx: Queryable, ids: readonly number[]): Promise<void> {
  await tx.delete(quarantinedEntries).where(inArray(id, [...ids]));
}

/**
 * Sets the reasons of entries that still cannot be stored. An entry that an erasure has rewritten since it was read keeps
 * its reason, because the new one may quote the erased address.
 */
export async function setReasons(
  db: Queryable,
  reasons: readonly Pick<WholeEntry, "id" | "reason" | "raw">[],
): Promise<void> {
  for (const one of reasons)
    await db
      .update(quarantinedEntries)
      .set({ reason: one.reason })
      .where(and(eq(id, one.id), eq(raw, one.raw), ne(reason, one.reason)));
}

/** More entries of a zone are counted as this many. */
const MOST_COUNTED = 1_000;

/**
 * Counts the entries of a zone that could not be read, by what is known of their time: the start of the hour in their
 * `timestamp` or `occurredAt` (epoch ms), or the day of their list. Entries with `exceptReason` are not counted.
 */
export async function countUnreadable(
  db: Queryable,
  zoneId: number,
  { sinceMs, exceptReason }: { sinceMs: number; exceptReason: string },
) {
  // The bytes may be no text. `escape` writes them as one, and doubles the backslash before a quote within a string.
  const text = sql`encode(substring(${raw} from 1 for 16384), 'escape')`;
  const ms = sql`substring(${text} from '"(?:timestamp|occurredAt)"\\s*:\\s*(\\d{13})')::float8`;
  const counted = db
    .select({ hour: sql<number | null>`floor(${ms} / 3600000) * 3600000`.as("hour"), day })
    .from(quarantinedEntries)
    .where(and(eq(zone, zoneId), gt(receivedAt, new Date(sinceMs)), ne(reason, exceptReason)))
    .limit(MOST_COUNTED)
    .as("counted");
  return db
    .select({ hour: counted.hour, day: counted.day, entries: sql<number>`count(*)::integer` })
    .from(counted)
    .groupBy(counted.hour, counted.day);
}

/** How much of a zone is held in the quarantine because the pseudonym key is missing. */
export interface HeldCounts {
  readonly zoneId: number;
  /** Events, records and entries that cannot be read. */
  readonly entries: number;
}

/** Returns the count of each zone with held entries, by id. */
export function readHeldCounts(db: Queryable): Promise<HeldCounts[]> {
  return db
    .select({ zoneId: zone, entries: sql<number>`count(*)::integer` })
    .from(quarantinedEntries)
    .where(eq(isHeld, true))
    .groupBy(zone)
    .orderBy(zone);
}
