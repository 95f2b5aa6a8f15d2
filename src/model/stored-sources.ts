/** The sources that a spike stores, and values that are usual for a zone. */
import { z } from "zod";
import { ATTACKER_ROLES, SOURCE_KINDS, type UsualDimension, WINDOWS } from "./kinds.ts";

/** The rule id of an incident, which is a spike of the zone's source series. */
export const SOURCES_RULE = "(sources)";

/** A value that grew, with its number of events in a quarter of an hour now and at the same time yesterday. */
const grown = z.object({
  dimension: z.enum(["asn", "country", "path", "rule", "ja4"]),
  value: z.string(),
  now: z.int(),
  before: z.int(),
});

const top = z.array(z.object({ value: z.string(), count: z.int() }));

/** The attackers of an incident, and the reason. Keys and values come from requests: hostile text. */
export const storedSources = z.object({
  /** The series that fired first. */
  kind: z.enum(SOURCE_KINDS),
  /** The attackers, in the order in which they fired first. */
  findings: z.array(
    z.object({
      kind: z.enum(SOURCE_KINDS),
      key: z.string(),
      /** Number of different members of the key in the window, and the usual number for this key. */
      members: z.int(),
      usualMembers: z.int(),
      windowMinutes: z.literal(WINDOWS),
      /** `members` minus `usualMembers`, compared with the threshold; of many events in one minute, these events. */
      count: z.int(),
      usual: z.number(),
      threshold: z.number(),
      score: z.number(),
      /** Events and different rules of the minute in which an address reached a fixed line. */
      burst: z.object({ events: z.int(), rules: z.int() }).optional(),
      /** The ends of the first and the latest minute over the line, in minutes since the epoch. */
      since: z.int(),
      lastFiredAt: z.int().default(0),
      role: z.enum(ATTACKER_ROLES).default("opened"),
    }),
  ),
  /** How many further keys reached their lines and are not listed. */
  unnamed: z.int().default(0),
  /** The values that grew most, the largest growth first. */
  grown: z.array(grown),
  /** The rules of the active attackers' events. */
  rules: top,
  /** Number of events of the active attackers in the window of the strongest one. */
  events: z.int(),
  /** True if addresses are masked, so that several count as one. */
  isMasked: z.boolean(),
  /** The minute of the strongest source's first event in the last 24 hours, in minutes since the epoch. */
  firstSeen: z.int().nullish(),
  /** Number of events of known sources in the hour. They are excluded from everything else. */
  known: z.int().optional(),
});
export type StoredSources = z.output<typeof storedSources>;
export type StoredAttacker = StoredSources["findings"][number];
export type GrownValue = z.output<typeof grown>;

/** A network, a JA4 fingerprint or a path template that is usual in a zone. */
export interface UsualValue {
  readonly dimension: UsualDimension;
  readonly value: string;
  /** Epoch ms. */
  readonly since: number;
}

/** A day (of an ASN) or an address that had a value, with the time of its first event in epoch ms. */
export interface FirstUse {
  readonly dimension: UsualDimension;
  /** Value of the dimension; for `path` a path. */
  readonly value: string;
  readonly user: string;
  readonly at: number;
}
