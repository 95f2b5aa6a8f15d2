import type { AlertMessage } from "../model/alert-message.ts";
import { mustRing } from "./must-ring.ts";
import type { Notifier } from "./notifier.ts";
import { sendParts } from "./send-parts.ts";
import { openSlackApi, type SlackApi, type SlackApiOptions, type SlackPlace } from "./slack-api.ts";
import { toSlackMessage, toSlackParts, toWholeSlackMessage } from "./slack-blocks.ts";

export interface SlackBotOptions extends SlackApiOptions {
  /** An id, or a name with `#`. */
  readonly channel: string;
}

/** `C0123ABC:1732197780.000100`. */
function readReference(reference: string | null): SlackPlace | null {
  const [, channel, ts] = /^([A-Z0-9]{1,30}):(\d{1,20}\.\d{1,10})$/.exec(reference ?? "") ?? [];
  return channel === undefined || ts === undefined ? null : { channel, ts };
}

/** Null for a place that no later transition could be brought to. */
function toReference(place: SlackPlace | null): string | null {
  const reference = place === null ? null : `${place.channel}:${place.ts}`;
  return readReference(reference) === null ? null : reference;
}

/** False where the message can be edited no more. */
async function edit(
  api: SlackApi,
  told: SlackPlace,
  message: AlertMessage,
  signal: AbortSignal,
): Promise<boolean> {
  if (!(await api.update(told, toWholeSlackMessage(message), signal))) return false;
  if (mustRing(message)) {
    const { text } = toSlackMessage(message);
    await api.post({ channel: told.channel, thread_ts: told.ts, reply_broadcast: true, text }, signal);
  }
  return true;
}

/**
 * Slack by a bot token: one message per alert, edited in place; what must ring is also said in its thread and shown in
 * the channel, because an edit rings nowhere. A long list of rules is in the thread alone. There is no idempotency key: after a lost reply the message is there twice.
 * @throws {UsageError} for a bad URL or token
 */
export function createSlackBotNotifier({ channel, ...options }: SlackBotOptions): Notifier {
  const api = openSlackApi(options);
  return {
    name: options.name,
    kind: "slack-bot",
    send(message, sending) {
      const { signal } = sending;
      const parts = toSlackParts(message);
      return sendParts(parts.length + 1, sending, async (index, reference) => {
        const told = readReference(reference);
        const part = parts[index - 1];
        if (part !== undefined) {
          const where = told === null ? { channel } : { channel: told.channel, thread_ts: told.ts };
          await api.post({ ...where, ...part }, signal);
          return reference;
        }
        if (told !== null && (await edit(api, told, message, signal))) return reference;
        return toReference(await api.post({ channel, ...toWholeSlackMessage(message) }, signal));
      });
    },
  };
}
