import { z } from "zod";

/** Who or what was behind the alert's events, most first. `share` is of the alert's count, from 0 to 1. */
const topList = z.array(
  z.object({ value: z.string(), count: z.number().nonnegative(), share: z.number().min(0).max(1) }),
);
/** Epoch milliseconds. */
const time = z.number().int();
const count = z.number().int().nonnegative();

const reasons = ["first", "worse", "repeat", "advice", "acknowledged", "resolved"] as const;
export const severities = ["info", "warning", "error", "critical"] as const;

/** Of one message; the first where there are more. */
export const MAX_LINKS = 5;
/** Of an address as it is sent: what every channel has room for. */
export const MAX_URL_CHARS = 500;

/**
 * What one transition of an alert says, before any channel has shaped it: the content of an outbox row. Every string
 * that came from a log or from the platform's AI is hostile and unescaped; each channel neutralises for its own exit.
 */
export const alertMessage = z.object({
  alertId: z.number().int(),
  fingerprint: z.string().max(255),
  /** The same for every transition of one episode: receivers thread by it. */
  dedupeKey: z.string().min(1).max(255),
  /** From 1, rising by one; delivered in this order on every channel. */
  transition: z.number().int().positive(),
  reason: z.enum(reasons),
  /** Of `worse` and `repeat`: the last notification on this channel said that the alert was resolved. */
  isAgain: z.boolean().optional(),
  /** A channel that can updates its message in place without notifying; it notifies later. */
  isQuiet: z.boolean().optional(),
  state: z.enum(["firing", "acknowledged", "resolved"]),
  severity: z.enum(severities),
  kind: z.enum(["spike", "new-rule", "self"]),
  /** Null where the alert is about Longwatch itself. */
  zoneId: z.number().int().nullable(),
  /** The operator's, from the configuration file. */
  zoneName: z.string().optional(),
  zoneLabels: z.record(z.string(), z.string()).optional(),
  ruleId: z.string().nullable(),
  ruleTitle: z.string().nullable(),
  headline: z.string(),
  startedAt: time,
  endedAt: time.nullable(),
  windowMinutes: z.number().positive(),
  count,
  /** Events expected in such a window. */
  usual: z.number().nonnegative(),
  threshold: z.number().nonnegative(),
  /** Deviations above the recent level. */
  score: z.number(),
  /** Largest count seen in any such window of the episode. */
  peak: count,
  /** `count / usual`; null where nothing was usual, because infinity is not JSON. */
  times: z.number().nonnegative().nullable(),
  /** What the platform did with the events. */
  actions: z.object({ blocked: count, logged: count, challenged: count, other: count }),
  top: z.object({
    ips: topList,
    asns: topList,
    countries: topList,
    paths: topList,
    userAgents: topList,
    ja4s: topList,
  }),
  /** Counts of equal spans, oldest first. */
  sparkline: z.array(z.number().nonnegative()),
  advice: z.object({
    state: z.enum(["pending", "present", "unavailable"]),
    text: z.string().nullable(),
    /** Why there is none, where there is none. */
    reason: z.string().nullable(),
  }),
  /** The operator's: the only addresses that may be live. */
  links: z.array(z.object({ title: z.string(), url: z.string() })),
  /**
   * Of a message that speaks for many rules at once: every one of them, largest first. The counts above are then sums.
   */
  members: z
    .array(
      z.object({
        zoneId: z.number().int(),
        zoneName: z.string().optional(),
        ruleId: z.string(),
        severity: z.enum(severities),
        count,
        windowMinutes: z.number().positive(),
        usual: z.number().nonnegative(),
      }),
    )
    .optional(),
  /** A command to copy; null where there is none. */
  howToSilence: z.string().nullable(),
  /** A command that lists the members, where there are any. */
  howToList: z.string().optional(),
  /** Where one message stands for many: all of them, each by a harmless name. */
  digest: z
    .array(
      z.object({
        alertId: z.number().int(),
        reason: z.enum(reasons),
        severity: z.enum(severities),
        zoneId: z.number().int().nullable(),
        zoneName: z.string().optional(),
        name: z.string(),
      }),
    )
    .optional(),
});

export type AlertMessage = z.infer<typeof alertMessage>;
