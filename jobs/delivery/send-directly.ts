import { setTimeout as delay } from "node:timers/promises";
import type { Routing } from "#alerts/rules/routing/routing.ts";
import { routeSelf } from "#alerts/rules/self-alert.ts";
import type { Notifier, SendOptions } from "#delivery/receivers/channel-definition.ts";
import { describeFailure } from "#delivery/receivers/delivery-error.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { notificationKeyOf } from "#model/fingerprint.ts";
import type { JobContext } from "../context.ts";

/** Longer than any channel's own limit. */
const TIMEOUT_MS = 40_000;
const PAUSE_MS = 2_000;
const MAX_PAUSE_MS = 60_000;

export interface DirectSenderParts extends Pick<JobContext, "notifiers" | "routing" | "clock" | "log"> {
  /** Wait before the second attempt. It doubles for each further attempt, up to a minute. */
  readonly pauseMs?: number;
}

export interface DirectSender {
  /** Sends the first message of an alert to the routes' channels, and retries each channel until it accepts. */
  open(message: AlertMessage): void;
  /** Sends the end of that alert to the channels that accepted its first message, and stops retrying the others. */
  close(message: AlertMessage): void;
  stop(): void;
}

/** Sends without the outbox. It is used only for the alert about the database, which the database cannot store. */
export function createDirectSender({
  notifiers,
  routing,
  clock,
  log,
  pauseMs = PAUSE_MS,
}: DirectSenderParts): DirectSender {
  const stopping = new AbortController();
  /** Stops starting attempts for the first message; an attempt in progress ends by itself. */
  let over = new AbortController();
  /**
   * The reference that each channel returned for the first message; undefined if the channel has not accepted that
   * message.
   */
  let lanes = new Map<Notifier, Promise<string | null | undefined>>();

  async function attempt(
    notifier: Notifier,
    message: AlertMessage,
    {
      number,
      ...kept
    }: Pick<SendOptions, "providerReference" | "progress" | "onProgress"> & { number: number },
  ): Promise<{ readonly taken?: string | null; readonly isRefused?: boolean }> {
    const { name: channel } = notifier;
    try {
      const sent = await notifier.send(message, {
        signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(TIMEOUT_MS)]),
        attempt: number,
        deliveryKey: notificationKeyOf(message, channel),
        ...kept,
      });
      log.info({ channel, reason: message.reason }, "direct notification sent");
      return { taken: sent.providerReference };
    } catch (thrown) {
      if (stopping.signal.aborted) return {};
      const { code, text, disposition } = describeFailure(thrown);
      log.warn({ channel, code, text, attempt: number }, "direct notification not sent");
      return { isRefused: disposition === "give-up" };
    }
  }

  async function send(
    notifier: Notifier,
    message: AlertMessage,
    reference: string | null,
    until: AbortSignal,
  ): Promise<string | null | undefined> {
    const signal = AbortSignal.any([until, stopping.signal]);
    let progress: string | null = null;
    const onProgress = (reached: string) => {
      progress = reached;
    };
    for (let number = 1; !signal.aborted; number++) {
      const { taken, isRefused = false } = await attempt(notifier, message, {
        number,
        providerReference: reference,
        progress,
        onProgress,
      });
      if (taken !== undefined || isRefused) return taken;
      const pause = Math.min(pauseMs * 2 ** (number - 1), MAX_PAUSE_MS);
      await delay(pause, undefined, { signal }).catch(() => undefined);
    }
    // A channel that has accepted a part, or has it at some recipients, gets the end.
    return progress === null ? undefined : null;
  }

  return {
    open(message) {
      over.abort();
      over = new AbortController();
      const { signal } = over;
      lanes = new Map(
        pickNotifiers(notifiers, routing(), message, clock()).map((notifier) => [
          notifier,
          send(notifier, message, null, signal),
        ]),
      );
    },
    close(message) {
      over.abort();
      for (const [notifier, lane] of lanes)
        void lane.then((reference) =>
          reference === undefined ? undefined : send(notifier, message, reference, stopping.signal),
        );
      lanes = new Map();
    },
    stop: () => stopping.abort(new Error("the service is stopping")),
  };
}

/** Silences are stored in the database, so none applies. If the routes name no channel, every channel is used. */
function pickNotifiers(
  notifiers: ReadonlyMap<string, Notifier>,
  routing: Routing,
  { severity }: AlertMessage,
  nowMs: number,
): Notifier[] {
  const { channels } = routeSelf({ routing, silences: [], nowMs }, { zoneId: null, severity });
  const named = channels.flatMap((channel) => notifiers.get(channel) ?? []);
  return named.length > 0 ? named : [...notifiers.values()];
}
