export interface DigestRoom {
  /** The place where a digest lists the names of its alerts. `headline` is for receivers that show nothing else. */
  readonly in: "list" | "headline";
  /** Characters of all names in one digest. */
  readonly maxChars: number;
  /** Characters that each name takes besides the name itself. */
  readonly charsBeside: number;
}

export interface ChannelRate {
  /** Number of messages per minute. After a quiet minute as many may be sent at once. */
  readonly perMinute: number;
  /**
   * The way notifications above the rate are merged into one message. Null for receivers that count and close alerts by
   * key: they would count a digest as one more alert, so notifications above the rate wait.
   */
  readonly digest: DigestRoom | null;
}
