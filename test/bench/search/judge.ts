import type { SearchBenchResult } from "../search.ts";
import { atLeast, atMost, judge, type Verdict } from "../verdict.ts";
import type { QuestionKind } from "./questions.ts";
import type { TimedQuestion } from "./time-questions.ts";

/** Every promise about searches against DuckDB over the same events. Ratios are taken repeat by repeat. */
export function judgeSearch({ questions, exported }: SearchBenchResult): Verdict[] {
  const ofKind = (kind: QuestionKind) => questions.filter(({ question }) => question.kind === kind);
  return [
    ...ofKind("roll-up").map((timed) => judge(timed.question.name, atMost(1), ratios(timed))),
    judge("other searches, geometric mean", atMost(4), geometricMeans(ofKind("ad-hoc").map(ratios))),
    ...ofKind("page").map((timed) =>
      judge(
        `${timed.question.name}, how much faster`,
        atLeast(50),
        ratios(timed).map((ratio) => 1 / ratio),
      ),
    ),
    ...ofKind("rare-text").map((timed) => judge(timed.question.name, atMost(1), ratios(timed))),
    ...ofKind("common-text").map((timed) => judge(timed.question.name, atMost(4), ratios(timed))),
    judge(
      "export of a day, to COPY TO STDOUT",
      atLeast(0.6),
      exported.archive.map((rate, repeat) => rate / (exported.copy[repeat] ?? Number.NaN)),
    ),
  ];
}

/** Our time to DuckDB's, repeat by repeat. */
export function ratios({ archiveMs, duckMs }: TimedQuestion): number[] {
  return archiveMs.map((ms, repeat) => ms / (duckMs[repeat] ?? Number.NaN));
}

function geometricMeans(lists: readonly (readonly number[])[]): number[] {
  const repeats = Math.min(...lists.map((list) => list.length));
  return Array.from({ length: repeats }, (_, repeat) =>
    Math.exp(lists.reduce((sum, list) => sum + Math.log(list[repeat] ?? Number.NaN), 0) / lists.length),
  );
}
