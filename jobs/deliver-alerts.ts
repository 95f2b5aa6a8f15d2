import { z } from "zod";
import type { Database } from "../db/client.ts";
import {
  type ClaimedNotification,
  claimDueNotifications,
  deferChannel,
  markDelivered,
  markRetry,
  markUndeliverable,
  readDueChannels,
} from "../db/queries/notifications.ts";
import { alertMessage } from "../src/channel/alert-message.ts";
import { planDelivery } from "../src/channel/delivery-backoff.ts";
import { describeFailure } from "../src/channel/describe-failure.ts";
import type { Notifier, SendResult } from "../src/channel/notifier.ts";
import type { Log } from "../src/log.ts";
import { defineJob } from "../src/queue/define-job.ts";

/** Sent at once on one channel, each of another alert. */
const BATCH = 4;
/** Of one attempt, whatever the notifier itself allows. Shorter than the lease, so that no live sender loses its row. */
const ATTEMPT_TIMEOUT_MS = 40_000;
const LEASE_MS = 60_000;

interface DeliveryFailure {
  readonly notificationId: number;
  readonly alertId: number;
  readonly channel: string;
  readonly code: string;
  /** Null where it is not tried again. */
  readonly retryInMs: number | null;
}

export interface DeliverAlertsDeps {
  readonly database: Database;
  /** By channel name. */
  readonly notifiers: ReadonlyMap<string, Notifier>;
  readonly log: Log;
  /** 0 to 1, exclusive; jitter of the back-off. */
  readonly random?: () => number;
  /** Told of every failed attempt once it is recorded: to ring again in time, and to report a channel that fails. */
  readonly afterFailure?: (failure: DeliveryFailure) => Promise<void>;
}

type Outcome = "delivered" | "retried" | "undeliverable" | "lost";

/**
 * Sends what is due, channel by channel side by side, until nothing is. Sends first and records then: killed in
 * between, it sends once more under the same key. Two copies share the rows; each is sent by one of them.
 */
export function createDeliverAlertsJob(deps: DeliverAlertsDeps) {
  return defineJob({
    name: "deliver-alerts",
    queue: "alerts",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 5 * 60_000,
    async run(_payload, signal) {
      const channels = await readDueChannels(deps.database.db);
      const lanes = await Promise.allSettled(
        channels.map((channel) => deliverChannel(deps, channel, signal)),
      );
      for (const lane of lanes) if (lane.status === "rejected") throw lane.reason;
      signal.throwIfAborted();
    },
  });
}

async function deliverChannel(deps: DeliverAlertsDeps, channel: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const claim = await claimDueNotifications(deps.database, { channel, limit: BATCH, leaseMs: LEASE_MS });
    const { notifications, dropped } = claim;
    if (notifications.length === 0 && dropped === 0) return;
    const settled = await Promise.allSettled(
      notifications.map((notification) => deliver(deps, notification, signal)),
    );
    const counts = { delivered: 0, retried: 0, undeliverable: 0, lost: 0 };
    for (const one of settled) if (one.status === "fulfilled") counts[one.value] += 1;
    const isHealthy = counts.retried === 0 && counts.undeliverable === 0;
    deps.log[isHealthy ? "info" : "warn"]({ channel, ...counts, dropped }, "notifications sent");
    for (const one of settled) if (one.status === "rejected") throw one.reason;
    // A receiver that is down gets one batch per run, not every row that waits for it.
    if (notifications.length > 0 && counts.retried === notifications.length) return;
  }
}

async function deliver(
  deps: DeliverAlertsDeps,
  notification: ClaimedNotification,
  signal: AbortSignal,
): Promise<Outcome> {
  const { db } = deps.database;
  const notifier = deps.notifiers.get(notification.channel);
  if (notifier === undefined) {
    return giveUp(deps, notification, "CHANNEL_UNKNOWN", "this channel is not configured");
  }
  const message = alertMessage.safeParse(notification.content);
  if (!message.success) {
    const fields = message.error.issues.map(({ path }) => path.join(".")).slice(0, 5);
    return giveUp(deps, notification, "CONTENT_INVALID", `not an alert message: ${fields.join(", ")}`);
  }
  let result: SendResult;
  try {
    result = await send(notifier, message.data, notification, signal);
  } catch (thrown) {
    // Stopping says nothing about the channel: the row stays as it is and is taken over when its lease is over.
    signal.throwIfAborted();
    return fail(deps, notification, thrown);
  }
  return (await markDelivered(db, notification, result.providerReference)) ? "delivered" : "lost";
}

/** Raced against the deadline: a notifier that ignores its signal must not hold the channel. */
async function send(
  notifier: Notifier,
  message: z.infer<typeof alertMessage>,
  { attempts: attempt, dedupeKey: deliveryKey, providerReference }: ClaimedNotification,
  stopping: AbortSignal,
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
  signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  try {
    signal.throwIfAborted();
    const options = { signal, attempt, deliveryKey, providerReference };
    return await Promise.race([notifier.send(message, options), ended]);
  } finally {
    clearTimeout(timer);
    stopping.removeEventListener("abort", stop);
  }
}

async function fail(
  deps: DeliverAlertsDeps,
  notification: ClaimedNotification,
  thrown: unknown,
): Promise<Outcome> {
  const { db } = deps.database;
  const { attempts: attempt, ageMs, channel } = notification;
  const { code, text, disposition, waitMs } = describeFailure(thrown);
  const random = (deps.random ?? Math.random)();
  const plan = planDelivery({ disposition, waitMs, attempt, ageMs, random });
  if (plan.kind === "give-up") {
    return giveUp(deps, notification, code, plan.because === "refused" ? text : `too old, at last: ${text}`);
  }
  const isHeld = await markRetry(db, notification, { delayMs: plan.delayMs, error: `${code}: ${text}` });
  if (disposition === "wait" && waitMs !== undefined) await deferChannel(db, channel, plan.delayMs);
  if (!isHeld) return "lost";
  await report(deps, notification, code, plan.delayMs);
  return "retried";
}

async function giveUp(
  deps: DeliverAlertsDeps,
  notification: ClaimedNotification,
  code: string,
  text: string,
): Promise<Outcome> {
  if (!(await markUndeliverable(deps.database.db, notification, `${code}: ${text}`))) return "lost";
  await report(deps, notification, code, null);
  return "undeliverable";
}

async function report(
  deps: DeliverAlertsDeps,
  { id: notificationId, alertId, channel }: ClaimedNotification,
  code: string,
  retryInMs: number | null,
): Promise<void> {
  // A nudge that fails costs time, not a message: the rows say what is left to do.
  await deps.afterFailure?.({ notificationId, alertId, channel, code, retryInMs }).catch(() => {});
}
