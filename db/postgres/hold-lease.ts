import type { Database } from "../client.ts";
import { acquireLease, readHolder, releaseLease, renewLease } from "../service/leases.ts";
import { hasEnded, nameHolder } from "./lease-holder.ts";

export interface HeldLease {
  readonly name: string;
  readonly fence: number;
  /** Aborts when a renewal finds the lease taken, because later work could not commit. */
  readonly lost: AbortSignal;
}

/**
 * Runs `fn` while holding the lease, renews the lease in the background and gives it back at the end. Returns null
 * without running `fn` while another process holds the lease. The lease of a process of this machine that has ended,
 * for example by a kill, is taken over at once. The lease is only a hint: the commits of `fn` must assert the fence.
 */
export async function holdLease<T>(
  database: Database,
  { name, ttlMs }: { name: string; ttlMs: number },
  fn: (lease: HeldLease) => Promise<T>,
): Promise<T | null> {
  const fence = await take(database, { name, ttlMs });
  if (fence === null) return null;
  const lost = new AbortController();
  const renew = async () => {
    if (!(await renewLease(database.db, { name, fence, ttlMs })))
      lost.abort(new Error(`lease ${name} was lost`));
  };
  // A failed renewal does not prove a loss. The next renewal or the fence decides.
  const timer = setInterval(() => void renew().catch(() => undefined), ttlMs / 3);
  try {
    return await fn({ name, fence, lost: lost.signal });
  } finally {
    clearInterval(timer);
    await releaseLease(database.db, { name, fence }).catch(() => undefined);
  }
}

/**
 * Takes the lease, even from a holder that seems to have ended. A wrong guess costs that holder its work in progress
 * and nothing else, because the fence separates the two.
 */
async function take(
  { db }: Database,
  { name, ttlMs }: { name: string; ttlMs: number },
): Promise<number | null> {
  const lease = { name, ttlMs, holder: nameHolder() };
  const fence = await acquireLease(db, lease);
  if (fence !== null) return fence;
  const former = await readHolder(db, name);
  return former !== null && hasEnded(former) ? acquireLease(db, { ...lease, ended: former }) : null;
}
