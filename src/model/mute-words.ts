import type { MuteKind } from "./kinds.ts";

/** Words for an alert or one of its transitions that was sent to no channel. */
export const MUTE_WORDS: Readonly<Record<MuteKind, string>> = {
  inhibition: "not sent: another alert inhibits it",
  incident: "not sent: part of another alert, which notifies",
  "few-addresses": "only listed: few addresses send most of its events",
  "first-day":
    "only listed: its zone is in its first day, and its requests neither attack nor are stopped in numbers",
  digest: "only listed: a silent rule is in the weekly digest",
  group: "not sent: part of an alert for several rules",
};

export interface Unsent {
  readonly silencedBy: number | null;
  readonly mutedBy: MuteKind | null;
  /** Channels in their quiet hours. */
  readonly held: readonly string[];
  /** Channels whose group interval was not over. */
  readonly waiting: readonly string[];
}

/** Returns why channels were not notified of a transition, each reason in words; empty if none applies. */
export function sayUnsent({ silencedBy, mutedBy, held, waiting }: Unsent): string[] {
  return [
    ...(silencedBy === null ? [] : [`silenced by #${silencedBy}`]),
    ...(mutedBy === null ? [] : [MUTE_WORDS[mutedBy]]),
    ...(held.length === 0 ? [] : [`after quiet hours to ${held.join(", ")}`]),
    ...(waiting.length === 0 ? [] : [`after group_interval to ${waiting.join(", ")}`]),
  ];
}
