import { asc, eq, lte, sql } from "drizzle-orm";
import type { KnownSource } from "#model/known-source.ts";
import type { Queryable } from "../client.ts";
import { knownSources } from "../schema/known-sources.ts";

export type KnownSourceRow = typeof knownSources.$inferSelect;
export type NewKnownSource = Omit<typeof knownSources.$inferInsert, "createdAt">;

/** Returns every stored known source, also those that have ended, the oldest first. */
export function listKnownSources(db: Queryable): Promise<KnownSourceRow[]> {
  return db.select().from(knownSources).orderBy(asc(knownSources.id));
}

export function toKnownSource({ kind, pattern, zoneId, reason, expiresAt }: KnownSourceRow): KnownSource {
  const zoneIds = zoneId === null ? null : [zoneId];
  return { kind, pattern, zoneIds, reason, untilMs: expiresAt?.getTime() ?? null };
}

/** Lets no other transaction add a known source before this one ends, so that a number of them can be kept. */
export async function lockKnownSources(tx: Queryable): Promise<void> {
  await tx.execute(sql`lock table ${knownSources} in share row exclusive mode`);
}

/**
 * Deletes the same source of the same zone, and every source that has ended, because neither counts for the limits. Returns
 * the ids of the same source.
 */
export async function deleteReplaced(
  tx: Queryable,
  { kind, pattern, zoneId }: NewKnownSource,
  now: Date,
): Promise<number[]> {
  const { id, expiresAt, ...known } = knownSources;
  await tx.delete(knownSources).where(lte(expiresAt, now));
  const isSame = sql`(${known.kind}, ${known.pattern}) = (${kind}, ${pattern})
    and ${known.zoneId} is not distinct from ${zoneId ?? null}::integer`;
  return (await tx.delete(knownSources).where(isSame).returning({ id })).map((one) => one.id);
}

export async function insertKnownSource(tx: Queryable, known: NewKnownSource): Promise<KnownSourceRow> {
  const [row] = await tx.insert(knownSources).values(known).returning();
  if (row === undefined) throw new Error("an insert returned no row");
  return row;
}

/** Deletes a known source and returns it; null if there is none. */
export async function deleteKnownSource(tx: Queryable, id: number): Promise<KnownSourceRow | null> {
  const [row] = await tx.delete(knownSources).where(eq(knownSources.id, id)).returning();
  return row ?? null;
}
