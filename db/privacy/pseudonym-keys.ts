import { isNull, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { pseudonymKeys } from "../schema/pseudonym-keys.ts";

/** Returns the fingerprint of the key in use; null before the first key. */
export async function readKeyId(db: Queryable): Promise<string | null> {
  const [row] = await db
    .select({ keyId: pseudonymKeys.keyId })
    .from(pseudonymKeys)
    .where(isNull(pseudonymKeys.retiredAt));
  return row?.keyId ?? null;
}

/**
 * Registers the key if none is in use. If calls run at once, one of them registers its key. Returns the fingerprint of
 * the key in use.
 */
export async function registerKeyId(db: Queryable, keyId: string): Promise<string | null> {
  await db.insert(pseudonymKeys).values({ keyId }).onConflictDoNothing();
  return readKeyId(db);
}

/** Puts another key in use. A key that was retired before may return. */
export async function replaceKeyId(tx: Queryable, keyId: string, nowMs: number): Promise<void> {
  const now = new Date(nowMs);
  await tx.update(pseudonymKeys).set({ retiredAt: now }).where(isNull(pseudonymKeys.retiredAt));
  await tx
    .insert(pseudonymKeys)
    .values({ keyId, adoptedAt: now })
    .onConflictDoUpdate({
      target: pseudonymKeys.keyId,
      set: { retiredAt: null, adoptedAt: now, missingAt: null, missingBecause: null },
    });
}

/** Records that a running process lacks the key in use. */
export async function recordMissingKey(db: Queryable, because: string): Promise<void> {
  await db
    .update(pseudonymKeys)
    .set({ missingAt: sql`now()`, missingBecause: because })
    .where(isNull(pseudonymKeys.retiredAt));
}

/** Returns the problem with the key that a process has reported within the last `sinceMs`, or null. */
export async function readKeyProblem(db: Queryable, sinceMs: number): Promise<string | null> {
  const [row] = await db
    .select({ because: pseudonymKeys.missingBecause })
    .from(pseudonymKeys)
    .where(
      sql`${pseudonymKeys.retiredAt} is null and ${pseudonymKeys.missingAt} > now() - make_interval(secs => ${sinceMs / 1_000})`,
    );
  return row?.because ?? null;
}
