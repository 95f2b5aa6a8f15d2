/** Sends a delivery, records its attempts, and copies it to the fallback. */

import { z } from "zod";
import type { Database, Queryable } from "#db/client.ts";
import {
  boundWaiting,
  hastenWaiting,
  lockChannelState,
  type StoredChannelState,
  saveChannelState,
} from "#db/delivery/channel-states.ts";
import { giveUpAged, insertFallbackCopies, readOverdue } from "#db/delivery/delivery-outcomes.ts";
import { dropUnshown } from "#db/delivery/drop-notifications.ts";
import {
  type ClaimedNotification,
  claimBegunDigest,
  claimDigest,
  claimDueNotifications,
  lockDigestCandidates,
  releaseFromDigest,
} from "#db/delivery/notifications.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type {
  ChannelCapabilities,
  ChannelRate,
  DigestRoom,
  Notifier,
  SendOptions,
  SendResult,
} from "#delivery/receivers/channel-definition.ts";
import { buildDigest, countFitting, digestKeyOf, toMember } from "#delivery/rules/digest-message.ts";
import {
  type AttemptsEnded,
  afterAttempts,
  MAX_AGE_MS,
  planClaim,
  spend,
} from "#delivery/rules/plan-delivery.ts";
import type { Log } from "#lib/log.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import { notificationKeyOf } from "#model/fingerprint.ts";

/** Number of messages sent at once on one channel, each of another alert. */
const BATCH = 4;
const LEASE_MS = 60_000;
/** Maximum number of rows read for one digest. The remaining rows go into the next digest. */
const DIGEST_CANDIDATES = 3_000;

/** One message to send: a notification, or a digest of several. */
export interface Delivery {
  readonly notifications: readonly ClaimedNotification[];
  /** Null if the delivery is not a digest. */
  readonly digestKey: string | null;
}

export interface ClaimedDeliveries {
  readonly deliveries: readonly Delivery[];
  readonly dropped: number;
  /** State of the channel when the rows were claimed; null for a channel that this process does not know. */
  readonly state: StoredChannelState | null;
}

/**
 * Claims what may be sent next on a channel, as its circuit and its rate allow. Locks the channel's row meanwhile, so
 * that of all concurrent callers one probes, and the rate is spent once. A result without claims and without dropped
 * rows means: not now.
 */
export function claimDeliveries(
  database: Database,
  channel: string,
  {
    rate,
    showsAcknowledgements,
    laterTransitions,
  }: Pick<ChannelCapabilities, "rate" | "showsAcknowledgements" | "laterTransitions">,
): Promise<ClaimedDeliveries> {
  return inTransaction(database, async ({ tx }) => {
    const { state, nowMs } = await lockChannelState(tx, channel);
    const plan = planClaim(state, rate, nowMs);
    if (plan.kind === "nothing") return { deliveries: [], dropped: 0, state };
    const unshown = await dropUnshown(tx, channel, [
      ...(showsAcknowledgements ? [] : ["acknowledged"]),
      ...(laterTransitions === "update-in-place" ? [] : ["assigned"]),
    ]);
    const claimed =
      plan.kind === "probe"
        ? await claimProbe(tx, channel)
        : ((await claimBegun(tx, channel)) ??
          (plan.kind === "together" && rate.digest !== null
            ? await claimTogether(tx, channel, rate.digest)
            : await claimAlone(tx, channel, plan.kind === "alone" ? Math.min(plan.atMost, BATCH) : 1)));
    const sent = claimed.deliveries.length;
    if (sent > 0) {
      const spentUntilMs = spend(state.spentUntilMs, rate, sent, nowMs);
      const retryAtMs = plan.kind === "probe" ? nowMs + LEASE_MS : state.retryAtMs;
      await saveChannelState(tx, channel, { ...state, spentUntilMs, retryAtMs });
    }
    return { ...claimed, dropped: claimed.dropped + unshown, state };
  });
}

/** Adds to the spent rate the messages beyond the one that was counted with the claim. */
export async function spendMore(
  database: Database,
  channel: string,
  rate: ChannelRate,
  messages: number,
): Promise<void> {
  if (messages <= 0) return;
  await inTransaction(database, async ({ tx }) => {
    const { state, nowMs } = await lockChannelState(tx, channel);
    const spentUntilMs = spend(state.spentUntilMs, rate, messages, nowMs);
    await saveChannelState(tx, channel, { ...state, spentUntilMs });
  });
}

/** Claims rows of a channel that this process does not know. They are not sent, so no rate is spent. */
export function claimForOthers(database: Database, channel: string): Promise<ClaimedDeliveries> {
  return inTransaction(database, async ({ tx }) => ({
    ...(await claimAlone(tx, channel, BATCH, true)),
    state: null,
  }));
}

type Claimed = Omit<ClaimedDeliveries, "state">;

async function claimAlone(
  tx: Queryable,
  channel: string,
  limit: number,
  digestsToo = false,
): Promise<Claimed> {
  const options = { channel, limit, leaseMs: LEASE_MS, digestsToo };
  const { notifications, dropped } = await claimDueNotifications(tx, options);
  return { deliveries: notifications.map((one) => ({ notifications: [one], digestKey: null })), dropped };
}

/** Claims a single notification, because a receiver may fail at a digest although it accepts everything else. */
async function claimProbe(tx: Queryable, channel: string): Promise<Claimed> {
  const alone = await claimAlone(tx, channel, 1);
  if (alone.deliveries.length > 0 || alone.dropped > 0) return alone;
  return (await releaseFromDigest(tx, channel)) ? claimAlone(tx, channel, 1) : alone;
}

async function claimBegun(tx: Queryable, channel: string): Promise<Claimed | null> {
  const begun = await claimBegunDigest(tx, { channel, leaseMs: LEASE_MS });
  return begun === null || begun.notifications.length === 0 ? null : { deliveries: [begun], dropped: 0 };
}

async function claimTogether(tx: Queryable, channel: string, room: DigestRoom): Promise<Claimed> {
  // The number of names that would fit if every name were a single letter.
  const limit = Math.min(Math.ceil(room.maxChars / (room.charsBeside + 1)), DIGEST_CANDIDATES);
  const { candidates, dropped } = await lockDigestCandidates(tx, { channel, limit });
  const readable = candidates.flatMap(({ id, dedupeKey, content }) => {
    const { data } = alertMessage.safeParse(content);
    return data === undefined ? [] : [{ id, dedupeKey, member: toMember(data) }];
  });
  const members = readable.map(({ member }) => member);
  const chosen = members.length === 0 ? [] : readable.slice(0, countFitting(members, room));
  if (chosen.length < 2) {
    const alone = await claimAlone(tx, channel, 1);
    return { ...alone, dropped: alone.dropped + dropped };
  }
  const digestKey = digestKeyOf(
    channel,
    chosen.map(({ dedupeKey }) => dedupeKey),
  );
  const ids = chosen.map(({ id }) => id);
  const notifications = await claimDigest(tx, ids, { digestKey, leaseMs: LEASE_MS });
  return { deliveries: [{ notifications, digestKey }], dropped };
}

/**
 * Time limit of one attempt, whatever the notifier itself allows. Shorter than the lease, so that no live sender
 * loses its row.
 */
const ATTEMPT_TIMEOUT_MS = 40_000;

/** Returns the stored message, or the reason why it cannot be read. */
export function readMessage(
  { notifications, digestKey }: Delivery,
  { capabilities }: Notifier,
): AlertMessage | string {
  const messages: AlertMessage[] = [];
  for (const { content } of notifications) {
    const { data, error } = alertMessage.safeParse(content);
    if (error !== undefined) {
      const fields = error.issues.map(({ path }) => path.join(".")).slice(0, 5);
      return `not an alert message: ${fields.join(", ")}`;
    }
    messages.push(data);
  }
  const [first] = messages;
  if (first === undefined) return "nothing to say";
  return digestKey === null ? first : buildDigest(messages, digestKey, capabilities.rate);
}

function toOptions({ notifications, digestKey }: Delivery): Omit<SendOptions, "signal"> {
  const [first] = notifications;
  return {
    attempt: attemptOf(notifications),
    deliveryKey: digestKey ?? first?.dedupeKey ?? "",
    providerReference: digestKey === null ? (first?.providerReference ?? null) : null,
    progress: first?.progress ?? null,
  };
}

export function attemptOf(notifications: Delivery["notifications"]): number {
  return Math.max(...notifications.map(({ attempts }) => attempts));
}

/** Sends the delivery with a deadline, so that a notifier that ignores its signal does not block the channel. */
export async function sendDelivery(
  notifier: Notifier,
  message: AlertMessage,
  delivery: Delivery,
  stopping: AbortSignal,
  onProgress: (progress: string) => void,
): Promise<SendResult> {
  const controller = new AbortController();
  const stop = () => controller.abort(stopping.reason);
  const timer = setTimeout(() => {
    controller.abort(new DOMException("the attempt took too long", "TimeoutError"));
  }, ATTEMPT_TIMEOUT_MS);
  stopping.addEventListener("abort", stop, { once: true });
  if (stopping.aborted) stop();
  const { signal } = controller;
  const { promise: ended, reject } = Promise.withResolvers<never>();
  // Nothing awaits this rejection any more if the send itself ended first.
  ended.catch(() => undefined);
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  try {
    signal.throwIfAborted();
    return await Promise.race([
      notifier.send(message, { ...toOptions(delivery), signal, onProgress }),
      ended,
    ]);
  } finally {
    clearTimeout(timer);
    stopping.removeEventListener("abort", stop);
  }
}

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

/** The channel that is notified when another one has not accepted a message for `afterMs`. */
export interface Fallback {
  readonly channel: string;
  readonly afterMs: number;
}

const MOST = 1_000;
const keyed = z.object({ dedupeKey: z.string() });

/** Copies overdue messages to the fallback channel, with keys of their own. The originals stay due. */
export async function copyToFallback(
  { database, log }: { readonly database: Database; readonly log: Log },
  { channel: fallback, afterMs }: Fallback,
): Promise<void> {
  const overdue = await readOverdue(database.db, { fallback, afterMs, limit: MOST });
  const copies = overdue.map(({ channel: standsInFor, ...row }) => {
    const { data } = keyed.safeParse(row.content);
    const episode = { ...row, dedupeKey: data?.dedupeKey ?? `alert-${row.alertId}` };
    const dedupeKey = notificationKeyOf(episode, fallback);
    // The fallback channel has no earlier message of this alert that it could update in place.
    const { isQuiet: _, ...content } = row.content as { isQuiet?: boolean };
    return { ...row, content, channel: fallback, standsInFor, dedupeKey };
  });
  const copied = await insertFallbackCopies(database.db, copies);
  if (copied > 0) log.warn({ channel: fallback, copied }, "messages copied to fallback channel");
}
