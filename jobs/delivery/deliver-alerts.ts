import { z } from "zod";
import { type Routing, routeToAll } from "#alerts/rules/routing/routing.ts";
import { enableChannels } from "#db/delivery/channel-states.ts";
import {
  markDelivered,
  markRetry,
  markUndeliverable,
  type RetryPlan,
  renewNotifications,
} from "#db/delivery/delivery-outcomes.ts";
import { hastenMisdated, readDueChannels } from "#db/delivery/notifications.ts";
import type { Notifier, SendResult } from "#delivery/receivers/channel-definition.ts";
import { describeFailure } from "#delivery/receivers/delivery-error.ts";
import { planDelivery } from "#delivery/rules/plan-delivery.ts";
import { defineJob } from "#store/queue/define-job.ts";
import { reportChannels } from "../alerts/report-service.ts";
import type { JobContext } from "../context.ts";
import {
  attemptOf,
  type ClaimedDeliveries,
  claimDeliveries,
  claimForOthers,
  copyToFallback,
  type Delivery,
  type Fallback,
  readMessage,
  recordAttempts,
  sendDelivery,
  spendMore,
} from "./send-delivery.ts";

/**
 * How long a row that this process cannot send is left for another one. During a deploy an old replica meets channels
 * and messages that only the new one knows.
 */
const HANDOVER_MS = 15 * 60_000;
const HANDOVER_PAUSE_MS = 30_000;
/** A digest is taken apart if it fails so often, at last on a channel that accepted the message before. */
const DIGEST_ATTEMPTS = 3;

export interface DeliverAlertsDeps extends Pick<JobContext, "database" | "notifiers" | "log"> {
  /** Selects the channels for alerts about a failing channel. If left out: every other channel. */
  readonly routing?: () => Routing;
  /** If null or left out, messages for a failing channel are not copied to another one. */
  readonly fallback?: Fallback | null;
  /** Called with each delivered digest's channel and number of messages. */
  readonly onDigest?: (channel: string, messages: number) => void;
  /** Returns a number from 0 to 1, exclusive, for the jitter of the back-off. */
  readonly random?: () => number;
}

/** A delivery with the state of its channel when it was claimed. */
interface Sending extends Delivery {
  readonly seen: ClaimedDeliveries["state"];
}

interface Outcome {
  readonly kind: "delivered" | "retried" | "undeliverable" | "lost";
  /** Set after a failure. */
  readonly error?: { readonly code: string; readonly text: string };
  /** Whether the channel works. `unknown` if nothing was sent, or if the server deferred some recipients. */
  readonly shows: "works" | "fails" | "unknown";
  /** Messages beyond the one that a delivery counts for. */
  readonly moreMessages?: number;
}

/**
 * Sends due notifications, all channels in parallel, until none is due or the channel's circuit is open or its rate
 * is spent. Each notification is sent first and recorded afterwards. If the process is killed in between, the
 * notification is sent again with the same dedupe key. Concurrent runs share the rows; each row is sent by one of
 * them. If a channel keeps failing, the other channels are notified. If a receiver ends alerts by itself, the last
 * message of each alert that still fires is sent again in time.
 */
export function createDeliverAlertsJob(deps: DeliverAlertsDeps) {
  const known = new WeakSet<Notifier>();
  const missing = deps.fallback?.channel;
  if (missing !== undefined && !deps.notifiers.has(missing)) {
    deps.log.error({ channel: missing }, "fallback channel not found");
  }
  return defineJob({
    name: "deliver-alerts",
    queue: "alerts",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 5 * 60_000,
    async run(_payload, signal) {
      await enableNew(deps, known);
      await hastenMisdated(deps.database.db);
      for (const [channel, { capabilities }] of deps.notifiers) {
        const { renewAfterMs: afterMs } = capabilities;
        if (afterMs !== null) await renewNotifications(deps.database.db, { channel, afterMs });
      }
      const { fallback } = deps;
      if (fallback != null && deps.notifiers.has(fallback.channel)) await copyToFallback(deps, fallback);
      const { routing = () => routeToAll([...deps.notifiers.keys()]) } = deps;
      const lanes: PromiseSettledResult<void>[] = [];
      do {
        const channels = await readDueChannels(deps.database.db);
        const sent = channels.map((channel) => deliverChannel(deps, channel, signal));
        lanes.push(...(await Promise.allSettled(sent)));
        // The alerts about failing channels are due at once.
      } while (!signal.aborted && (await reportChannels({ ...deps, routing })) > 0);
      for (const lane of lanes) if (lane.status === "rejected") throw lane.reason;
      signal.throwIfAborted();
      return lanes.length === 0 ? "no notification is due" : undefined;
    },
  });
}

/** Enables a disabled channel that was configured anew or whose service was restarted. */
async function enableNew(
  { database, notifiers }: DeliverAlertsDeps,
  known: WeakSet<Notifier>,
): Promise<void> {
  const added = [...notifiers].filter(([, notifier]) => !known.has(notifier));
  const names = added.map(([name]) => name);
  await enableChannels(database.db, names);
  for (const [, notifier] of added) known.add(notifier);
}

async function deliverChannel(deps: DeliverAlertsDeps, channel: string, signal: AbortSignal): Promise<void> {
  const notifier = deps.notifiers.get(channel);
  while (!signal.aborted) {
    const claimed =
      notifier === undefined
        ? await claimForOthers(deps.database, channel)
        : await claimDeliveries(deps.database, channel, notifier.capabilities);
    const { deliveries, dropped } = claimed;
    if (deliveries.length === 0 && dropped === 0) return;
    const settled = await Promise.allSettled(
      deliveries.map((delivery) => deliver(deps, notifier, { ...delivery, seen: claimed.state }, signal)),
    );
    const outcomes = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const counts = { delivered: 0, retried: 0, undeliverable: 0, lost: 0 };
    for (const { kind } of outcomes) counts[kind] += 1;
    const codes = [...new Set(outcomes.flatMap(({ error }) => error?.code ?? []))];
    const digested = deliveries.reduce((sum, { notifications }) => sum + notifications.length - 1, 0);
    if (deliveries.length > 0)
      deps.log[codes.length === 0 ? "info" : "warn"](
        { channel, ...counts, digested, codes },
        "notifications sent",
      );
    // No person missed a message: a later one says the same, or this kind of channel does not show it.
    if (dropped > 0) deps.log.debug({ channel, notifications: dropped }, "unneeded notifications dropped");
    const more = outcomes.reduce((sum, { moreMessages = 0 }) => sum + moreMessages, 0);
    if (notifier !== undefined) await spendMore(deps.database, channel, notifier.capabilities.rate, more);
    if (notifier !== undefined) await record(deps, notifier, claimed, outcomes);
    for (const one of settled) if (one.status === "rejected") throw one.reason;
    // A receiver that is down gets one batch per run, not every row that waits for it.
    const isDown = notifier === undefined || outcomes.some(({ shows }) => shows === "fails");
    if (isDown && deliveries.length > 0 && counts.retried === deliveries.length) return;
  }
}

async function record(
  deps: DeliverAlertsDeps,
  { name: channel, capabilities }: Notifier,
  { state }: ClaimedDeliveries,
  outcomes: readonly Outcome[],
): Promise<void> {
  if (state === null) return;
  const succeeded = outcomes.filter(({ shows }) => shows === "works").length;
  const failures = outcomes.flatMap(({ shows, error }) => (shows === "fails" ? (error ?? []) : []));
  const last = failures.at(-1);
  await recordAttempts(deps, channel, state, {
    longestPauseMs: capabilities.longestPauseMs,
    succeeded,
    failed: failures.length,
    isGone: outcomes.some(({ error }) => error?.code === "ENDPOINT_GONE"),
    lastError: last === undefined ? null : `${last.code}: ${last.text}`,
  });
}

async function deliver(
  deps: DeliverAlertsDeps,
  notifier: Notifier | undefined,
  delivery: Sending,
  signal: AbortSignal,
): Promise<Outcome> {
  const { db } = deps.database;
  if (notifier === undefined) {
    return leaveToOther(deps, delivery, "CHANNEL_UNKNOWN", "this channel is not configured");
  }
  const message = readMessage(delivery, notifier);
  if (typeof message === "string") return leaveToOther(deps, delivery, "CONTENT_INVALID", message);
  const { notifications, digestKey } = delivery;
  let result: SendResult;
  let [progress, sent]: [string | null, number] = [null, 0];
  try {
    result = await sendDelivery(notifier, message, delivery, signal, (reached) => {
      [progress, sent] = [reached, sent + 1];
    });
  } catch (thrown) {
    // The failed part is the one that was counted.
    if (!signal.aborted) return { ...(await fail(deps, delivery, thrown, progress)), moreMessages: sent };
    // A stop is no failure of the channel. Another process sends the row again with the same dedupe key.
    const error = "STOPPED: the service stopped while it was sent";
    await markRetry(db, notifications, { delayMs: 0, error, progress });
    throw signal.reason;
  }
  // A digest belongs to no single alert, so no later message may update it in place.
  const reference = digestKey === null ? result.providerReference : null;
  if (digestKey !== null) deps.onDigest?.(notifier.name, notifications.length);
  const { note = null } = result;
  if (note !== null)
    deps.log.warn({ channel: notifier.name, note }, "notification sent without its template");
  const written = await markDelivered(db, notifications, reference, note);
  const moreMessages = (result.messages ?? 1) - 1;
  return { kind: written > 0 ? "delivered" : "lost", shows: "works", moreMessages };
}

async function fail(
  deps: DeliverAlertsDeps,
  delivery: Sending,
  thrown: unknown,
  progress: string | null,
): Promise<Outcome> {
  const { notifications, digestKey, seen } = delivery;
  const { code, text, disposition, waitMs } = describeFailure(thrown);
  // A channel works if it accepted a part of the message, or if some recipients have the message.
  const shows = progress !== null ? "works" : code === "RECIPIENT_DEFERRED" ? "unknown" : "fails";
  const failed = { code, text, shows } as const;
  const attempt = attemptOf(notifications);
  // A digest counts as old as its youngest notification, so that none is given up too early.
  const ageMs = Math.min(...notifications.map((one) => one.ageMs));
  const random = (deps.random ?? Math.random)();
  const plan = planDelivery({ disposition, waitMs, attempt, ageMs, random });
  const isWaitRequested = disposition === "wait" && waitMs !== undefined;
  const isLastDigest =
    shows === "fails" && attempt >= DIGEST_ATTEMPTS && seen?.failures === 0 && !isWaitRequested;
  // If the receiver rejects the digest itself, or fails at it alone, its messages are tried one by one.
  if (digestKey !== null && (isLastDigest || plan.kind === "give-up"))
    return retry(deps, delivery, failed, { delayMs: 0, isAlone: true, progress });
  if (plan.kind === "again")
    return retry(deps, delivery, failed, { delayMs: plan.delayMs, isWaitRequested, progress });
  const why = plan.because === "refused" ? text : `too old, at last: ${text}`;
  return giveUp(deps, delivery, { ...failed, text: why });
}

/** Leaves the row to another process. Gives it up once the time for that is over. */
function leaveToOther(
  deps: DeliverAlertsDeps,
  delivery: Delivery,
  code: string,
  text: string,
): Promise<Outcome> {
  const isLate = delivery.notifications.every(({ ageMs }) => ageMs > HANDOVER_MS);
  const failed = { code, text, shows: "unknown" } as const;
  return isLate
    ? giveUp(deps, delivery, failed)
    : retry(deps, delivery, failed, { delayMs: HANDOVER_PAUSE_MS });
}

type Failed = NonNullable<Outcome["error"]> & Pick<Outcome, "shows">;

async function retry(
  { database }: DeliverAlertsDeps,
  { notifications }: Delivery,
  { shows, ...error }: Failed,
  plan: Omit<RetryPlan, "error">,
): Promise<Outcome> {
  const text = `${error.code}: ${error.text}`;
  const marked = await markRetry(database.db, notifications, { ...plan, error: text });
  return { kind: marked > 0 ? "retried" : "lost", error, shows };
}

async function giveUp(
  { database }: DeliverAlertsDeps,
  { notifications }: Delivery,
  { shows, ...error }: Failed,
): Promise<Outcome> {
  const marked = await markUndeliverable(database.db, notifications, `${error.code}: ${error.text}`);
  return { kind: marked > 0 ? "undeliverable" : "lost", error, shows };
}
