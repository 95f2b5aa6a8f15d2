import type { AlertMessage } from "../../model/alert-message.ts";
import type { AlertRecord } from "../../model/alert-record.ts";

/**
 * A transition's message as one channel should read it. Who was never told of the alert reads that it fires, not that it
 * got worse or still does; who was last told of its end reads that it fires again. `alert` is as it was before.
 */
export function addressMessage(
  message: AlertMessage,
  channel: string,
  { alert, quiet = [] }: { alert: AlertRecord | null; quiet?: readonly string[] },
): AlertMessage {
  const { reason } = message;
  if (reason !== "worse" && reason !== "repeat") return message;
  const told = alert?.transitions.filter((entry) => entry.channels.includes(channel)) ?? [];
  // What only changed there without a sound has been noticed by nobody.
  const last = told.findLast((entry) => !entry.quiet.includes(channel)) ?? told.at(-1);
  if (last === undefined) return { ...message, reason: "first" };
  return {
    ...message,
    ...(last.reason === "resolved" ? { isAgain: true } : {}),
    ...(quiet.includes(channel) ? { isQuiet: true } : {}),
  };
}
