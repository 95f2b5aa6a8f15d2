import type { Database } from "#db/client.ts";
import {
  boundWaiting,
  hastenWaiting,
  lockChannelState,
  type StoredChannelState,
  saveChannelState,
} from "#db/delivery/channel-states.ts";
import { giveUpAged } from "#db/delivery/delivery-outcomes.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Log } from "#lib/log.ts";
import { type AttemptsEnded, afterAttempts, MAX_AGE_MS } from "#stages/delivery/plan-delivery.ts";

/**
 * Updates a channel's circuit after attempts; `seen` is its state when they were claimed. If the channel has
 * recovered, its waiting notifications become due at once. If its circuit is open, the earliest becomes due at the
 * time of the probe, whatever its back-off is, and notifications that have waited too long are given up.
 */
export async function recordAttempts(
  { database, log }: { readonly database: Database; readonly log: Log },
  channel: string,
  seen: StoredChannelState,
  ended: Omit<AttemptsEnded, "nowMs">,
): Promise<void> {
  const isWell = seen.state === "closed" && seen.failures === 0;
  if (ended.failed === 0 && (isWell || ended.succeeded === 0)) return;
  const moved = await inTransaction(database, async ({ tx }) => {
    const { state: before, nowMs } = await lockChannelState(tx, channel);
    const after = { ...before, ...afterAttempts(before, { ...ended, nowMs }) };
    await saveChannelState(tx, channel, after);
    if (before.state === "open" && after.state === "closed") await hastenWaiting(tx, channel);
    if (after.state === "open") await boundWaiting(tx, channel, new Date(after.retryAtMs));
    const error = `too old, at last: ${after.lastError}`;
    if (after.state !== "closed") await giveUpAged(tx, { channel, maxAgeMs: MAX_AGE_MS, error });
    return { before, after };
  });
  const { before, after } = moved;
  if (before.state === after.state) return;
  if (after.state === "closed") log.info({ channel }, "channel circuit closed");
  else log.warn({ channel, circuit: after.state, lastError: after.lastError }, "channel circuit opened");
}
