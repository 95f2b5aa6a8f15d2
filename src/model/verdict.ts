import { z } from "zod";
import { exclusionProposal } from "./exclusion.ts";
import { VERDICT_CLASSES, VERDICT_FEATURES, VERDICT_LOOKS, VERDICTS, type VerdictFeature } from "./kinds.ts";

const share = z.number().min(0).max(1);
const count = z.number().int().nonnegative();
/** Epoch milliseconds. */
const time = z.number().int();

/** Odds are never shown above this. */
export const MOST_ODDS = 0.95;

/** An attack with such odds is all but certain. */
const SURE_ODDS = 0.9;

/** The numbers that a verdict is computed from, each from 0 to 1; null if a number is not known. */
export type Features = Readonly<Record<VerdictFeature, number | null>>;

/** One request of the alert, as an example. Hostile text, cut. */
export const sampleRequest = z.object({
  at: time,
  logId: z.string(),
  /** Empty if the address is not known or was erased. */
  ip: z.string(),
  method: z.string(),
  url: z.string(),
  ruleId: z.string(),
  /** The WAF's action on it. */
  action: z.string(),
  /** What matched, such as `ARGS:title`; null if the record does not say. */
  parameter: z.string().nullable(),
  matched: z.string().nullable(),
});
export type SampleRequest = z.output<typeof sampleRequest>;

/**
 * What an alert is, judged at one look. Texts are sentences for people; they quote no request. The sample, the exclusion
 * and the crawler's name come from requests: hostile text.
 */
export const storedVerdict = z.object({
  look: z.enum(VERDICT_LOOKS),
  judgedAt: time,
  said: z.enum(VERDICTS),
  /** The class with the best odds, also if the verdict is unclear. */
  likeliest: z.enum(VERDICT_CLASSES),
  /** Odds of the likeliest class, cut at `MOST_ODDS`. */
  odds: share,
  /** The odds of every class. */
  classes: z.record(z.enum(VERDICT_CLASSES), share),
  /** True if the events of the first two hours went on: at 6 or 24 hours a fifth of them or more still come. */
  isLasting: z.boolean(),
  /** The verdict in a few words: `Probably an attack`. */
  title: z.string(),
  /** The two strongest reasons for the likeliest class, and the strongest against it. */
  for: z.array(z.string()).max(2),
  against: z.string().nullable(),
  /** Each number with what it adds to the likeliest class, against the second one, in log odds. */
  features: z.record(z.enum(VERDICT_FEATURES), z.object({ value: share.nullable(), adds: z.number() })),
  /** Of the window that was judged. `records`: how many raw records were read. */
  counts: z.object({
    events: count,
    addresses: count,
    networks: count,
    paths: count,
    blocked: count,
    challenged: count,
    logged: count,
    other: count,
    records: count,
  }),
  /** Start of the window; its end is `judgedAt`. */
  since: time,
  /** The evidence that was missing, in words: `raw records`, `JA4`, `a month of history`. */
  missing: z.array(z.string()),
  /** Who sends the events, new or known: `4 addresses of 2 networks; 1 network is usual here`. */
  who: z.string(),
  /** The next step, with its figures. */
  nextStep: z.string(),
  sample: sampleRequest.nullable(),
  /** Name of the verified operator. */
  crawler: z.string().nullable(),
  /** For a misfire that lasts. */
  exclusion: exclusionProposal.nullable(),
});
export type StoredVerdict = z.output<typeof storedVerdict>;

/** Returns whether the verdict is an attack that is all but certain. */
export function isSureAttack({ said, odds }: Pick<StoredVerdict, "said" | "odds">): boolean {
  return said === "attack" && odds >= SURE_ODDS;
}
