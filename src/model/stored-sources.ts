import { z } from "zod";
import { SOURCE_KINDS, WINDOWS } from "./kinds.ts";

/** The spike of a zone's source series stands under this rule id. */
export const SOURCES_RULE = "(sources)";

/** A value that grew, and its events in a quarter of an hour now and at the same time yesterday. */
const grown = z.object({
  dimension: z.enum(["asn", "country", "path", "rule", "ja4"]),
  value: z.string(),
  now: z.int(),
  before: z.int(),
});

const top = z.array(z.object({ value: z.string(), count: z.int() }));

/** The source series of a zone that fire, and why. Keys and values come from requests: hostile text. */
export const storedSources = z.object({
  /** The series that fired first. */
  kind: z.enum(SOURCE_KINDS),
  findings: z.array(
    z.object({
      kind: z.enum(SOURCE_KINDS),
      key: z.string(),
      /** Different members of the key in the window, and how many are usual for this key. */
      members: z.int(),
      usualMembers: z.int(),
      windowMinutes: z.literal(WINDOWS),
      /** `members` less `usualMembers`, compared with the line. */
      count: z.int(),
      usual: z.number(),
      threshold: z.number(),
      score: z.number(),
      /** Minutes since the epoch. */
      since: z.int(),
    }),
  ),
  /** The values that grew most, the largest growth first. */
  grown: z.array(grown),
  /** The rules of the strongest source's events. */
  rules: top,
  /** Events of the strongest source in its window. */
  events: z.int(),
  /** Whether addresses are masked, so that several count as one. */
  isMasked: z.boolean(),
  /** The minute of the strongest source's first event of the last 24 hours, since the epoch. */
  firstSeen: z.int().nullish(),
  /** Events of known sources in the hour, which are left out of everything else. */
  known: z.int().optional(),
});
export type StoredSources = z.output<typeof storedSources>;
export type GrownValue = z.output<typeof grown>;
