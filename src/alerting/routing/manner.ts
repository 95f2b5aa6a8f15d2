/**
 * What another message about a known alert does on a channel. rings: it is posted anew, and heard. edits: it can change
 * the old one without a sound. keyed: the receiver knows the alert by its key and never pages for it twice.
 */
export type Manner = "rings" | "edits" | "keyed";

const MANNERS: Readonly<Record<string, Manner>> = {
  "slack-bot": "edits",
  discord: "edits",
  pagerduty: "keyed",
  opsgenie: "keyed",
  alertmanager: "keyed",
};

/** By the notifier's kind. */
export function mannerOf(kind: string | undefined): Manner {
  return MANNERS[kind ?? ""] ?? "rings";
}
