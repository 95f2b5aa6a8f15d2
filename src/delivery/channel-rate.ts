export interface DigestRoom {
  readonly in: "list" | "headline";
  readonly maxChars: number;
  /** Of each name, whatever it is. */
  readonly charsBeside: number;
}

/** How much a channel takes, and what becomes of the rest. */
export interface ChannelRate {
  /** Messages; as many may go at once after a quiet minute. */
  readonly perMinute: number;
  /**
   * Where the names in a digest are written, and how many characters of them go into one; null for receivers that count
   * and close alerts by key and would take a digest for one more: there the rest waits.
   */
  readonly digest: DigestRoom | null;
}

/**
 * By the notifier's kind. Slack takes about a message a second, PagerDuty about 120 a minute; people read far fewer, so
 * what they read is kept below what they could be sent. The list has room beside the limits of slack-blocks, teams-card,
 * discord-message and webhook-body.
 */
const RATES: Readonly<Record<string, ChannelRate>> = {
  terminal: { perMinute: 60, digest: { in: "list", maxChars: 20_000, charsBeside: 2 } },
  webhook: { perMinute: 120, digest: { in: "list", maxChars: 16_000, charsBeside: 84 } },
  slack: { perMinute: 30, digest: { in: "list", maxChars: 9_000, charsBeside: 2 } },
  "slack-bot": { perMinute: 30, digest: { in: "list", maxChars: 9_000, charsBeside: 2 } },
  teams: { perMinute: 20, digest: { in: "list", maxChars: 8_000, charsBeside: 2 } },
  discord: { perMinute: 20, digest: { in: "list", maxChars: 2_800, charsBeside: 2 } },
  email: { perMinute: 20, digest: { in: "list", maxChars: 15_000, charsBeside: 2 } },
  pagerduty: { perMinute: 100, digest: null },
  opsgenie: { perMinute: 100, digest: null },
  alertmanager: { perMinute: 600, digest: null },
};

/** Kinds that show who has taken an alert on: by an event of their own, or in the message that is edited in place. */
const SHOW_ACKNOWLEDGEMENTS: ReadonlySet<string> = new Set(["pagerduty", "opsgenie", "slack-bot", "discord"]);

export function showsAcknowledgements(kind: string): boolean {
  return SHOW_ACKNOWLEDGEMENTS.has(kind);
}

/** Of a kind that shows no more than a headline. */
const HEADLINE_RATE: ChannelRate = {
  perMinute: 20,
  digest: { in: "headline", maxChars: 220, charsBeside: 2 },
};

export function rateOf(kind: string): ChannelRate {
  return RATES[kind] ?? HEADLINE_RATE;
}
