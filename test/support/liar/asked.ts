import type { ActiveLie, Question } from "./lie.ts";
import type { PassMemory } from "./pass-memory.ts";
import type { TruePlatform } from "./true-platform.ts";
import type { Witness } from "./witness.ts";

/** One request to be answered, and everything that its answer may depend on. */
export interface LiarRequest extends Question {
  /** The path without the query. */
  readonly path: string;
  readonly body: unknown;
  readonly now: number;
  readonly truth: TruePlatform;
  /** The lies that apply to this request. */
  readonly lies: readonly ActiveLie[];
  readonly witness: Witness;
  /** Earlier pages of the list's passes. */
  readonly passes: PassMemory;
  /** Records which events the lies about single entries changed. */
  tally(changed: readonly { logId: string; timestamp: number }[]): void;
  /** Records that a lie changed the answer, and the number of events that it changed. */
  readonly note: (lie: ActiveLie, events: number) => void;
  /** Returns whether this page, which lies between the first and the last, has to be empty. */
  emptyPage(): boolean;
  /** Returns whether this answer has to contradict itself. */
  contradict(): boolean;
}
