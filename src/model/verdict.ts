import { z } from "zod";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { exclusionProposal } from "./advice.ts";
import {
  type Mark,
  VERDICT_CLASSES,
  VERDICT_FEATURES,
  VERDICT_TIMES,
  VERDICTS,
  type VerdictFeature,
  type VerdictTime,
  type VerdictWord,
} from "./kinds.ts";

const share = z.number().min(0).max(1);
const count = z.number().int().nonnegative();
/** Epoch milliseconds. */
const time = z.number().int();

/** The time from the opening of a spike until each verdict is due. */
export const VERDICT_AFTER_MS: Readonly<Record<VerdictTime, number>> = {
  first: 0,
  minute: MINUTE_MS,
  "five-minutes": 5 * MINUTE_MS,
  "half-hour": 30 * MINUTE_MS,
  "six-hours": 6 * HOUR_MS,
  day: DAY_MS,
};

/**
 * Returns the verdict that is due: the latest one whose time has come, unless that or a later one is `known`. It sees what those before
 * it would have seen.
 */
export function dueVerdictTime(openedAtMs: number, nowMs: number, known?: VerdictTime): VerdictTime | null {
  const due = VERDICT_TIMES.findLastIndex((look) => openedAtMs + VERDICT_AFTER_MS[look] <= nowMs);
  const isKnown = known !== undefined && VERDICT_TIMES.indexOf(known) >= due;
  return isKnown ? null : (VERDICT_TIMES[due] ?? null);
}

/** A verdict judges at most so many of the newest events, and reads the records of so many of them. */
export const MOST_EVENTS = 5_000;
export const MOST_RECORDS = 200;

/** An address that triggers so many rules elsewhere looks like an attacker's. */
export const DIRTY_RULES = 3;

/** Odds are never shown above this. */
export const MOST_ODDS = 0.95;

/** An attack with such odds is all but certain. */
export const SURE_ODDS = 0.9;

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
  /** Part of the request that matched, such as `ARGS:title`; null if the record does not say. */
  parameter: z.string().nullable(),
  matched: z.string().nullable(),
});
export type SampleRequest = z.output<typeof sampleRequest>;

/**
 * Verdict on an alert at one time (`look`). Texts are sentences for people; they quote no request. The sample, the exclusion
 * and the crawler's name come from requests: hostile text.
 */
export const storedVerdict = z.object({
  look: z.enum(VERDICT_TIMES),
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
  /** Counts of the window that was judged. `records`: how many raw records were read. */
  counts: z.object({
    /** Requests with an idiom of attacks or of a tool, and those of them that got through; left out by earlier versions. */
    hostile: count.optional(),
    hostileThrough: count.optional(),
    /** Requests with an idiom that a rule of injections matched and that got through; left out by earlier versions. */
    injectedThrough: count.optional(),
    /** Requests that rose; left out by earlier versions, which counted events. */
    requests: count.optional(),
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
  /** The largest count of the spike before the verdict; left out by earlier versions. */
  peak: z.number().nonnegative().optional(),
  /** The log odds of the likeliest class against the second one without any of the numbers. With what these add, those of `odds`. */
  start: z.number().optional(),
  /** Events that would have come anyway, of addresses that send as much as before; left out by earlier versions. */
  background: z.object({ events: count, perHour: z.number().nonnegative().nullable() }).optional(),
  /** Start of the window; its end is `judgedAt`. */
  since: time,
  /** The evidence that was missing, in words: `raw records`, `JA4`, `a month of history`. */
  missing: z.array(z.string()),
  /** Senders of the events, new or known: `4 addresses of 2 networks; 1 network is usual here`. */
  who: z.string(),
  /** The next step, with its figures. */
  nextStep: z.string(),
  sample: sampleRequest.nullable(),
  /** Name of the verified operator. */
  crawler: z.string().nullable(),
  /** Proposed exclusion for a misfire that lasts. */
  exclusion: exclusionProposal.nullable(),
});
export type StoredVerdict = z.output<typeof storedVerdict>;

/** Returns how many requests are known to have got through. The fate of those with an unknown action is not known. */
export function countThrough({ logged }: Pick<StoredVerdict["counts"], "logged">): number {
  return logged;
}

/** Returns how many requests were judged. */
export function countRequests({ requests, events }: StoredVerdict["counts"]): number {
  return requests ?? events;
}

/**
 * Returns whether the class of a verdict is another one than that of an earlier verdict, or of none. An attack and a scanner are one
 * class: hostile. A verdict that has become unclear says nothing new.
 */
export function turns(
  before: Pick<StoredVerdict, "said"> | null,
  { said }: Pick<StoredVerdict, "said">,
): boolean {
  const classOf = (word: VerdictWord) => (word === "scanner" ? "attack" : word);
  return said !== "unclear" && (before === null || classOf(before.said) !== classOf(said));
}

/** Returns whether a verdict says that nobody attacks: visitors, a client or a crawler are in the way of a rule. */
export function isBenign({ said }: Pick<StoredVerdict, "said">): boolean {
  return said === "misfire" || said === "broken-client" || said === "crawler";
}

/** Returns whether a class or a mark says that somebody attacks. */
export function isHostileWord(word: VerdictWord | Mark): boolean {
  return word === "attack" || word === "scanner";
}

/** Returns whether it is likelier that nobody attacks, also if a verdict is unclear. */
export function leansBenign({ likeliest }: Pick<StoredVerdict, "likeliest">): boolean {
  return !isHostileWord(likeliest);
}

/** Returns whether the verdict is an attack that is all but certain. */
export function isSureAttack({ said, odds }: Pick<StoredVerdict, "said" | "odds">): boolean {
  return said === "attack" && odds >= SURE_ODDS;
}
