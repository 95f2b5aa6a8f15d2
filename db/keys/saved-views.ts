import { and, asc, eq, gt, or, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { savedViews } from "../schema/people.ts";

export type SavedViewRow = typeof savedViews.$inferSelect;
export type WantedView = Pick<SavedViewRow, "name" | "page" | "state" | "isShared">;

/** Returns the key's own views and the shared ones with ids after `afterId`, oldest first. */
export function listSavedViews(
  db: Queryable,
  { keyId, afterId, limit }: { keyId: string; afterId: number; limit: number },
): Promise<SavedViewRow[]> {
  return db
    .select()
    .from(savedViews)
    .where(and(gt(savedViews.id, afterId), or(eq(savedViews.keyId, keyId), eq(savedViews.isShared, true))))
    .orderBy(asc(savedViews.id))
    .limit(limit);
}

/** Inserts a view. Returns null if the key has `most` views already. */
export async function insertSavedView(
  tx: Queryable,
  view: WantedView & Pick<SavedViewRow, "keyId" | "createdBy">,
  most: number,
): Promise<SavedViewRow | null> {
  if ((await tx.$count(savedViews, eq(savedViews.keyId, view.keyId))) >= most) return null;
  const [row] = await tx.insert(savedViews).values(view).returning();
  return row ?? null;
}

/** Changes a view of this key. Returns null if the key has none with this id. */
export async function updateSavedView(
  db: Queryable,
  { id, keyId, ...view }: WantedView & Pick<SavedViewRow, "id" | "keyId">,
): Promise<SavedViewRow | null> {
  const [row] = await db
    .update(savedViews)
    .set({ ...view, changedAt: sql`now()` })
    .where(and(eq(savedViews.id, id), eq(savedViews.keyId, keyId)))
    .returning();
  return row ?? null;
}

/** Deletes a view of this key, or of any key if `keyId` is null. */
export async function deleteSavedView(
  db: Queryable,
  { id, keyId }: { id: number; keyId: string | null },
): Promise<boolean> {
  const deleted = await db
    .delete(savedViews)
    .where(and(eq(savedViews.id, id), keyId === null ? undefined : eq(savedViews.keyId, keyId)))
    .returning({ id: savedViews.id });
  return deleted.length === 1;
}
