import type { Queryable } from "#db/client.ts";
import type { Span } from "#model/horizon.ts";

/** Two numbers that should be the same. */
export interface Difference {
  /** Start of the counted hour or day, epoch ms. */
  readonly at: number;
  /** Null if all rules were counted together. */
  readonly ruleId: string | null;
  readonly expected: number;
  readonly found: number;
  /** Further facts, such as ids; untrusted text. */
  readonly detail: string | null;
  /** True if the service corrects it without a command. */
  readonly correctsItself?: true;
  /** True if only events differ that the platform does not show. */
  readonly isUnshown?: true;
}

/** The result of one check. */
export interface Check {
  readonly name: string;
  /** The names of the two compared sides. */
  readonly sides: readonly [expected: string, found: string];
  /** How much was compared, in words. */
  readonly compared: string;
  /** The result in words. If missing, the number of differences is shown. */
  readonly verdict?: string;
  readonly differences: readonly Difference[];
  /** The parts that were left out, with the reasons. */
  readonly notes: readonly string[];
  /** Reason why the check failed, or null. */
  readonly failure: string | null;
}

/** The span that is checked: whole hours of one zone. */
export interface Checked extends Span {
  readonly db: Queryable;
  readonly zoneId: number;
  readonly now: number;
  /** Called with the name of the running check and the finished share of it, 0 to 1. */
  readonly onStep: (label: string, share: number) => void;
}

/** Yields consecutive spans of at most `lengthMs`, aligned to it, that make up [from, to). */
export function* eachPart({ from, to }: Span, lengthMs: number): Generator<Span> {
  for (let at = from; at < to; ) {
    const end = Math.min(at - (at % lengthMs) + lengthMs, to);
    yield { from: at, to: end };
    at = end;
  }
}
