/** The closed lists of plans, block lists and kinds of receivers. Others have them from `kinds.ts`. */

/** The kinds of a block list's entries. `network` is a range of addresses; a network's number is `asn`. */
export const BLOCK_KINDS = ["address", "network", "asn", "ja4"] as const;
export type BlockKind = (typeof BLOCK_KINDS)[number];

/** The forms of a block list. `access-list`: the platform's own. */
export const BLOCK_FORMS = ["text", "json", "ipset", "nginx", "access-list"] as const;
export type BlockForm = (typeof BLOCK_FORMS)[number];

/**
 * Why an attacker is not on a block list. not-hostile: no verdict is so sure. visitors: visitors came from it. machine: a known
 * source, a crawler or a monitor did. mixed: under half of its requests are hostile. unusable: the key is masked, a pseudonym,
 * erased or of no visitor. over: its time has ended.
 */
export const LEFT_OUT = [
  "not-hostile",
  "visitors",
  "machine",
  "mixed",
  "unusable",
  "over",
  "too-many",
] as const;
export type LeftOut = (typeof LEFT_OUT)[number];

/** The senders of requests. Hostile: attackers. Machine: crawlers, monitors and programs of the site. */
export const REQUEST_CLASSES = ["hostile", "machine", "visitor", "unknown"] as const;
export type RequestClass = (typeof REQUEST_CLASSES)[number];

/** The proposals of a plan for a rule, and the actions that its events get now. */
export const REVIEW_PLANS = ["block", "block-after-exclusion", "log", "undecided", "unplanned"] as const;
export type ReviewPlan = (typeof REVIEW_PLANS)[number];
export const RULE_MODES = ["blocks", "challenges", "logs", "mixed", "quiet"] as const;
export type RuleMode = (typeof RULE_MODES)[number];

/** The forms of a choice, and the requests that are shown of a rule. */
export const REVIEW_FORMS = ["terraform", "curl", "csv", "json"] as const;
export type ReviewForm = (typeof REVIEW_FORMS)[number];
export const REVIEW_SAMPLES = ["visitor", "attack"] as const;

/** The kinds of channels, in the order in which documents and error messages list them. */
export const CHANNEL_KINDS = [
  "terminal",
  "webhook",
  "slack",
  "pagerduty",
  "teams",
  "discord",
  "slack-bot",
  "alertmanager",
  "opsgenie",
  "jira-service-management",
  "email",
  "mattermost",
  "google-chat",
  "telegram",
  "ntfy",
  "pushover",
] as const;
export type ChannelKind = (typeof CHANNEL_KINDS)[number];

/** The kinds of destinations to which events are forwarded, in the order in which documents and error messages list them. */
export const FORWARD_KINDS = [
  "splunk",
  "elastic",
  "otlp",
  "loki",
  "azure-monitor",
  "kafka",
  "syslog",
  "webhook",
  "file",
] as const;
export type ForwardKind = (typeof FORWARD_KINDS)[number];
