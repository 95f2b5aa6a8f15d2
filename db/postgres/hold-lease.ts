import type { Database } from "../client.ts";
import { acquireLease, readHolder, releaseLease, renewLease } from "../service/leases.ts";
import { hasEnded, nameHolder } from "./lease-holder.ts";

export interface HeldLease {
  readonly name: string;
  readonly fence: number;
  /** Aborts when a renewal finds the lease taken: what follows could not commit anyway. */
  readonly lost: AbortSignal;
}

/**
 * Runs `fn` while holding the lease, renewing it in the background and giving it back at the end; null, without running
 * anything, while another holds it. That of a process of this machine which has ended, killed perhaps, is taken over at
 * once. The lease is only a hint: what `fn` commits must assert the fence.
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
  // A failed renewal is no proof of loss; the next one, or the fence, tells.
  const timer = setInterval(() => void renew().catch(() => undefined), ttlMs / 3);
  try {
    return await fn({ name, fence, lost: lost.signal });
  } finally {
    clearInterval(timer);
    await releaseLease(database.db, { name, fence }).catch(() => undefined);
  }
}

/** A wrong guess about the holder's end would cost its work in progress and nothing else: the fence keeps the two apart. */
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
