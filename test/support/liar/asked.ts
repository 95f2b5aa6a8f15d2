import type { Lie, Question } from "./lie.ts";
import type { TruePlatform } from "./true-platform.ts";
import type { Witness } from "./witness.ts";

/** One question to be answered, and what its answer may depend on. */
export interface Asked extends Question {
  /** Without the query. */
  readonly path: string;
  readonly body: unknown;
  readonly now: number;
  readonly truth: TruePlatform;
  /** Those told to this question. */
  readonly lies: readonly Lie[];
  readonly witness: Witness;
  /** Records which events the answer changed. */
  tally(changed: readonly { logId: string; timestamp: number }[]): void;
  /** Whether this page, which lies between the first and the last, is to be empty. */
  emptyPage(): boolean;
  /** Whether this answer is to contradict itself. */
  contradict(): boolean;
}
