import type { SearchBenchResult } from "../search.ts";
import { atLeast, atMost, judge, type Verdict } from "../verdict.ts";
import type { QuestionKind } from "./questions.ts";
import type { TimedQuestion } from "./time-questions.ts";

/** Every promise about searches against DuckDB over the same events. Ratios are taken repeat by repeat. */
export function judgeSearch({ questions, exported }: SearchBenchResult): Verdict[] {
  const ofKind = (kind: QuestionKind) => questions.filter(({ question }) => question.kind === kind);
  const slow = questions.filter(({ duckMs }) => percentile(duckMs, 0.5) > NOTICEABLE_MS);
  return [
    judge("all questions, geometric mean", atMost(0.9), geometricMeans(questions.map(ratios))),
    ...slow.map((timed) => judge(timed.question.name, atMost(2.5), ratios(timed))),
    ...ofKind("scan").map(({ question, archiveMs }) => judge(question.name, atMostMs(600), archiveMs)),
    ...ofKind("page").map(({ question, archiveMs }) => judge(question.name, atMostMs(100), archiveMs)),
    judge(
      "export of a day, to COPY TO STDOUT",
      atLeast(0.8),
      exported.archive.map((rate, repeat) => rate / (exported.copy[repeat] ?? Number.NaN)),
    ),
  ];
}

const atMostMs = (value: number) => ({ kind: "at-most", value, unit: "ms" }) as const;

/** Below this a ratio says nothing to a person. */
const NOTICEABLE_MS = 50;

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

/** Nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
