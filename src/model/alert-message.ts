/** The message of an alert. */
import { z } from "zod";
import {
  ADVICE_STATES,
  ALERT_STATES,
  ATTACKER_ROLES,
  MESSAGE_KINDS,
  REASONS,
  SEVERITIES,
  SOURCE_KINDS,
  SOURCE_TRAITS,
} from "./kinds.ts";
import { storedVerdict } from "./verdict.ts";

/**
 * The most frequent values among the alert's events, in descending order. `share` is relative to the alert's count,
 * from 0 to 1.
 */
const topList = z.array(
  z.object({ value: z.string(), count: z.number().nonnegative(), share: z.number().min(0).max(1) }),
);
/** Epoch milliseconds. */
const time = z.number().int();
const count = z.number().int().nonnegative();

/** Part of a verdict that a message has. Only the sample and the crawler's name are text of requests. */
const messageVerdict = storedVerdict.omit({ classes: true, features: true, exclusion: true });

/** Maximum number of links in one message. The first ones are kept. */
export const MAX_LINKS = 5;
/** Maximum length of a link's address, which every channel has room for. */
export const MAX_URL_CHARS = 500;

/**
 * The message of one alert transition in a form that no channel has changed yet: the content of an outbox row. Every
 * string from a log or from the platform's AI is hostile and unescaped. Each channel escapes it for its own format.
 */
export const alertMessage = z.object({
  alertId: z.number().int(),
  fingerprint: z.string().max(255),
  /** The same for every transition of one episode. Receivers group messages by it. */
  dedupeKey: z.string().min(1).max(255),
  /** The first transition is 1, and each following one is higher by one. Every channel delivers in this order. */
  transition: z.number().int().positive(),
  reason: z.enum(REASONS),
  /** True for `worse` and `repeat` if the last notification on this channel said that the alert was resolved. */
  isAgain: z.boolean().optional(),
  /** True if a channel that updates its message in place must not notify now. It notifies later. */
  isQuiet: z.boolean().optional(),
  state: z.enum(ALERT_STATES),
  severity: z.enum(SEVERITIES),
  kind: z.enum(MESSAGE_KINDS),
  /** Null if the alert is about Longwatch itself. */
  zoneId: z.number().int().nullable(),
  /** The operator's name for the zone, from the configuration file. */
  zoneName: z.string().optional(),
  zoneLabels: z.record(z.string(), z.string()).optional(),
  ruleId: z.string().nullable(),
  ruleTitle: z.string().nullable(),
  /** Rules that changed, for the kinds of changes. */
  rules: z.array(z.string()).optional(),
  /** The search of a custom condition, as a person wrote it. */
  condition: z.object({ filters: z.array(z.string()), query: z.string() }).optional(),
  headline: z.string(),
  /** The unit of the count, if not events. */
  unit: z.enum(["rules", "addresses", "values"]).optional(),
  /** Further facts, one line each. */
  details: z.array(z.string()).optional(),
  startedAt: time,
  endedAt: time.nullable(),
  windowMinutes: z.number().positive(),
  count,
  /** Number of events expected in such a window. */
  usual: z.number().nonnegative(),
  threshold: z.number().nonnegative(),
  /** Deviations above the recent level. */
  score: z.number(),
  /** Largest count seen in any such window of the episode. */
  peak: count,
  /** `count / usual`; null if `usual` is zero, because infinity is not JSON. */
  times: z.number().nonnegative().nullable(),
  /** The platform's actions on the events. */
  actions: z.object({ blocked: count, logged: count, challenged: count, other: count }),
  top: z.object({
    ips: topList,
    asns: topList,
    countries: topList,
    paths: topList,
    userAgents: topList,
    ja4s: topList,
  }),
  /** The sources by which routes and silences match the alert: those that fire, and those that most events share. */
  traits: z.partialRecord(z.enum(SOURCE_TRAITS), z.array(z.string())).optional(),
  /** The `traits` that a silence of this alert names, the most specific first. */
  silenceBy: z.array(z.enum(SOURCE_TRAITS)).optional(),
  /** The latest verdict; left out if there is none. */
  verdict: messageVerdict.optional(),
  /** The title of the verdict that was sent before, if the class has changed since. */
  was: z.string().optional(),
  /** A line that says that the platform's advice and the verdict disagree, and why. */
  disagreement: z.string().optional(),
  /** The platform's own words for actions whose effect is not known, the most frequent first. Hostile text. */
  unknownActions: z.array(z.string()).optional(),
  /** For a misfire: the command that shows what an exclusion would have silenced, or the reason why there is none. */
  exclusion: z.object({ command: z.string().nullable(), reason: z.string().nullable() }).optional(),
  /** Who has the alert; left out if nobody has. Hostile text. */
  assignedTo: z.string().optional(),
  /** Says how a person marked this subject before. */
  marked: z.string().optional(),
  /** Counts of equal spans, oldest first. */
  sparkline: z.array(z.number().nonnegative()),
  advice: z.object({
    state: z.enum(ADVICE_STATES),
    text: z.string().nullable(),
    /** The reason why there is no advice; null if there is advice. */
    reason: z.string().nullable(),
  }),
  /** The operator's links. Only these addresses may be live links. */
  links: z.array(z.object({ title: z.string(), url: z.string() })),
  /** Attackers of an incident, the newest first, then those that are quiet. Keys are hostile text. */
  attackers: z
    .array(
      z.object({
        kind: z.enum(SOURCE_KINDS),
        key: z.string(),
        role: z.enum(ATTACKER_ROLES),
        startedAt: time,
        lastSeenAt: time,
        isActive: z.boolean(),
        /** True if a person has resolved the attacker. */
        isResolved: z.boolean().optional(),
        /** Describes in a sentence what it does. */
        finding: z.string(),
        /** Those by which silences match the attacker. */
        traits: z.partialRecord(z.enum(SOURCE_TRAITS), z.array(z.string()).readonly()),
      }),
    )
    .optional(),
  /** How many further attackers there are. */
  unnamedAttackers: count.optional(),
  /** The rules whose spikes are part of an incident, the most severe first and then the largest. */
  members: z
    .array(
      z.object({
        zoneId: z.number().int(),
        zoneName: z.string().optional(),
        ruleId: z.string(),
        severity: z.enum(SEVERITIES),
        count,
        windowMinutes: z.number().positive(),
        usual: z.number().nonnegative(),
        /** Describes in a sentence what a zone's sources have in common. Hostile text. */
        finding: z.string().optional(),
      }),
    )
    .optional(),
  /** A command to copy; null if there is none. */
  howToSilence: z.string().nullable(),
  /** A command that lists the members, if there are any. */
  howToList: z.string().optional(),
  /** All alerts of a digest, each with a harmless name. */
  digest: z
    .array(
      z.object({
        alertId: z.number().int(),
        reason: z.enum(REASONS),
        severity: z.enum(SEVERITIES),
        zoneId: z.number().int().nullable(),
        zoneName: z.string().optional(),
        name: z.string(),
      }),
    )
    .optional(),
});

export type AlertMessage = z.infer<typeof alertMessage>;

/**
 * The way a channel shows a later message about the same alert. `post-anew`: a new message, which notifies people.
 * `update-in-place`: a change of the earlier message, which notifies nobody. `same-incident`: the receiver recognises
 * the alert by its key and does not notify people again.
 */
export type LaterMessage = "post-anew" | "update-in-place" | "same-incident";
