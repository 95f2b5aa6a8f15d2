import { z } from "zod";
import type { Database } from "../db/client.ts";
import {
  type ClaimedNotification,
  claimDueNotifications,
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
import { reportChannels } from "./report-channels.ts";

/** Sent at once on one channel, each of another alert. */
const BATCH = 4;
/** Of one attempt, whatever the notifier itself allows. Shorter than the lease, so that no live sender loses its row. */
const ATTEMPT_TIMEOUT_MS = 40_000;
const LEASE_MS = 60_000;
/**
 * How long a row that this process cannot send is left for another: while a deploy is under way, an old replica meets
 * channels and messages that only the new one knows.
 */
const HANDOVER_MS = 15 * 60_000;
const HANDOVER_PAUSE_MS = 30_000;

export interface DeliverAlertsDeps {
  readonly database: Database;
  /** By channel name. */
  readonly notifiers: ReadonlyMap<string, Notifier>;
  readonly log: Log;
  /** 0 to 1, exclusive; jitter of the back-off. */
  readonly random?: () => number;
}

interface Outcome {
  readonly kind: "delivered" | "retried" | "undeliverable" | "lost";
  /** Of a failure. */
  readonly code?: string;
}

/**
 * Sends what is due, channel by channel side by side, until nothing is. Sends first and records then: killed in
 * between, it sends once more under the same key. Two copies share the rows; each is sent by one of them. A channel that
 * keeps failing is told of on the others.
 */
export function createDeliverAlertsJob(deps: DeliverAlertsDeps) {
  return defineJob({
    name: "deliver-alerts",
    queue: "alerts",
    payload: z.object({}),
    attempts: 3,
    timeoutMs: 5 * 60_000,
    async run(_payload, signal) {
      const lanes: PromiseSettledResult<void>[] = [];
      do {
        const channels = await readDueChannels(deps.database.db);
        const sent = channels.map((channel) => deliverChannel(deps, channel, signal));
        lanes.push(...(await Promise.allSettled(sent)));
        // What that has to say is due at once.
      } while (!signal.aborted && (await reportChannels(deps)) > 0);
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
    const outcomes = settled.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
    const counts = { delivered: 0, retried: 0, undeliverable: 0, lost: 0 };
    for (const { kind } of outcomes) counts[kind] += 1;
    const codes = [...new Set(outcomes.flatMap(({ code }) => code ?? []))];
    deps.log[codes.length === 0 ? "info" : "warn"](
      { channel, ...counts, dropped, codes },
      "notifications sent",
    );
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
    return leaveToOther(deps, notification, "CHANNEL_UNKNOWN", "this channel is not configured");
  }
  const message = alertMessage.safeParse(notification.content);
  if (!message.success) {
    const fields = message.error.issues.map(({ path }) => path.join(".")).slice(0, 5);
    return leaveToOther(deps, notification, "CONTENT_INVALID", `not an alert message: ${fields.join(", ")}`);
  }
  let result: SendResult;
  try {
    result = await send(notifier, message.data, notification, signal);
  } catch (thrown) {
    if (!signal.aborted) return fail(deps, notification, thrown);
    // Stopping says nothing about the channel: whoever is there next sends it, under the same key.
    await markRetry(db, notification, {
      delayMs: 0,
      error: "STOPPED: the service stopped while it was sent",
    });
    throw signal.reason;
  }
  return { kind: (await markDelivered(db, notification, result.providerReference)) ? "delivered" : "lost" };
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
  // A rejection that nobody waits for any more, where the send itself was the first to end.
  ended.catch(() => undefined);
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
  const { attempts: attempt, ageMs } = notification;
  const { code, text, disposition, waitMs } = describeFailure(thrown);
  const random = (deps.random ?? Math.random)();
  const plan = planDelivery({ disposition, waitMs, attempt, ageMs, random });
  if (plan.kind === "give-up") {
    return giveUp(deps, notification, code, plan.because === "refused" ? text : `too old, at last: ${text}`);
  }
  const isTold = disposition === "wait" && waitMs !== undefined;
  return retry(deps, notification, { code, text, delayMs: plan.delayMs, isTold });
}

/** Not sent by this process; given up once every other has had its time. */
function leaveToOther(
  deps: DeliverAlertsDeps,
  notification: ClaimedNotification,
  code: string,
  text: string,
): Promise<Outcome> {
  if (notification.ageMs > HANDOVER_MS) return giveUp(deps, notification, code, text);
  return retry(deps, notification, { code, text, delayMs: HANDOVER_PAUSE_MS, isTold: false });
}

async function retry(
  { database }: DeliverAlertsDeps,
  notification: ClaimedNotification,
  { code, text, ...plan }: { code: string; text: string; delayMs: number; isTold: boolean },
): Promise<Outcome> {
  const isHeld = await markRetry(database.db, notification, { ...plan, error: `${code}: ${text}` });
  return { kind: isHeld ? "retried" : "lost", code };
}

async function giveUp(
  { database }: DeliverAlertsDeps,
  notification: ClaimedNotification,
  code: string,
  text: string,
): Promise<Outcome> {
  const isHeld = await markUndeliverable(database.db, notification, `${code}: ${text}`);
  return { kind: isHeld ? "undeliverable" : "lost", code };
}
