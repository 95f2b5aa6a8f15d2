import { type AlertRecord, type NotifyReason, toldChannels } from "./alert-record.ts";

/**
 * Who hears of a transition. News goes to every channel; an update or a resolve only to those that have something to
 * update or to close.
 */
export function pickChannels(input: {
  readonly reason: NotifyReason;
  readonly alert: AlertRecord | null;
  readonly channels: readonly string[];
  readonly isSilenced: boolean;
}): readonly string[] {
  const { reason, alert, isSilenced } = input;
  const channels = [...new Set(input.channels)];
  if (reason === "resolved" || reason === "advice") {
    const told: ReadonlySet<string> = alert === null ? new Set() : toldChannels(alert);
    return reason === "advice" && isSilenced ? [] : channels.filter((channel) => told.has(channel));
  }
  return isSilenced ? [] : channels;
}
