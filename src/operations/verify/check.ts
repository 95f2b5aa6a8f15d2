import type { Queryable } from "../../../db/client.ts";
import type { Span } from "../../model/span.ts";

/** Two numbers that should be the same. */
export interface Difference {
  /** Start of what was counted, epoch ms. */
  readonly at: number;
  /** Null where all rules were counted together. */
  readonly ruleId: string | null;
  readonly expected: number;
  readonly found: number;
  /** What the numbers do not say, such as ids; untrusted text. */
  readonly detail: string | null;
}

/** What was compared with what, and what differs. */
export interface Check {
  readonly name: string;
  /** What `expected` and `found` are counts of. */
  readonly sides: readonly [expected: string, found: string];
  /** How much was compared, in words. */
  readonly compared: string;
  /** In words; what the differences say where it is left out. */
  readonly verdict?: string;
  readonly differences: readonly Difference[];
  /** What was left out, and why. */
  readonly notes: readonly string[];
  /** Why nothing could be compared though it should have been; null when it could. */
  readonly failure: string | null;
}

/** What is checked: whole hours of one zone. */
export interface Checked extends Span {
  readonly db: Queryable;
  readonly zoneId: number;
  readonly now: number;
  /** Told what is being looked at and how much of the check is done, 0 to 1. */
  readonly onStep: (label: string, share: number) => void;
}

/** The spans of a UTC day at most that make up [from, to). */
export function* eachPart({ from, to }: Span, lengthMs: number): Generator<Span> {
  for (let at = from; at < to; ) {
    const end = Math.min(at - (at % lengthMs) + lengthMs, to);
    yield { from: at, to: end };
    at = end;
  }
}
