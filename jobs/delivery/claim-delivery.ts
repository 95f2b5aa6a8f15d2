import type { Database, Queryable } from "#db/client.ts";
import { lockChannelState, type StoredChannelState, saveChannelState } from "#db/delivery/channel-states.ts";
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
import type { ChannelCapabilities, ChannelRate, DigestRoom } from "#delivery/receivers/channel-definition.ts";
import { countFitting, digestKeyOf, toMember } from "#delivery/rules/digest-message.ts";
import { planClaim, spend } from "#delivery/rules/plan-delivery.ts";
import { alertMessage } from "#model/alert-message.ts";

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
