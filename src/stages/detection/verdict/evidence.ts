import type { ActionClass, VerdictLook } from "#model/kinds.ts";
import type { RequestDetails, RequestFacts } from "#model/request-facts.ts";

/** One event of an alert: of its rule, or of its attackers. Texts are hostile; empty if not known. */
export interface VerdictEvent {
  /** Epoch ms. */
  readonly at: number;
  readonly logId: string;
  readonly ruleId: string;
  readonly ip: string;
  readonly asn: string;
  readonly ja4: string;
  readonly ua: string;
  readonly url: string;
  readonly action: ActionClass;
  /** The platform's protection that it is of, such as `waf`. */
  readonly feature?: string;
  /** The facts of its request; null if none is known. */
  readonly facts: RequestFacts | null;
}

/** A rule that one of the alert's addresses triggered on a path within 24 hours, in this alert or elsewhere. */
export interface NearbyRule {
  readonly ip: string;
  readonly ruleId: string;
  /** Path template, as `templateOf` returns it. */
  readonly template: string;
}

/** Values that were usual in the zone before the alert began. */
export interface UsualValues {
  readonly asns: ReadonlySet<string>;
  readonly ja4s: ReadonlySet<string>;
  /** Path templates. */
  readonly paths: ReadonlySet<string>;
  /** Days of history that it was learnt from. With none, nothing is said about what is usual. */
  readonly days: number;
  /** False if records of the zone never have a Cookie: then their absence says nothing. */
  readonly hasCookies: boolean;
}

/** Everything that a verdict is judged from. Times are epoch ms. */
export interface VerdictEvidence {
  readonly look: VerdictLook;
  readonly judgedAt: number;
  /** Start of the alert. */
  readonly openedAt: number;
  /** Start of the window: the beginning of the rise that opened the alert. */
  readonly since: number;
  /** The rule of the alert; null for an incident. */
  readonly ruleId: string | null;
  /** The newest 5,000 events of the alert in the window, the newest first. */
  readonly events: readonly VerdictEvent[];
  /** For each address, the largest number of the alert's events in an hour of the 24 hours before the window. Others sent none. */
  readonly usualSenders: ReadonlyMap<string, number>;
  /** Events of the rule in an hour of these 24 hours, on average; null for an incident. */
  readonly usualPerHour: number | null;
  /** Rules of the alert's addresses within 24 hours. */
  readonly nearby: readonly NearbyRule[];
  /** Facts by log id, of up to 200 of the events. */
  readonly requests: ReadonlyMap<string, RequestDetails>;
  readonly usual: UsualValues;
  /** Name of the operator whose crawler sends most of the events, if that was verified. */
  readonly crawler: string | null;
  /** Events of the last two hours relative to those of the alert's first two hours; null before the look at 6 hours. */
  readonly lasting: number | null;
}
