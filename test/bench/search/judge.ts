import { atLeast, atMost, judge, type Verdict } from "../measure.ts";
import type { SearchBenchResult } from "../search.ts";
import { DAYS } from "./data-set.ts";
import type { QuestionKind } from "./questions.ts";
import type { TimedQuestion } from "./time-questions.ts";

/** Every promise about searches against DuckDB over the same events. Ratios are taken repeat by repeat. */
export function judgeSearch({
  events,
  questions,
  exported,
  finds,
  archived,
  memory,
}: SearchBenchResult): Verdict[] {
  const ofKind = (kind: QuestionKind) => questions.filter(({ question }) => question.kind === kind);
  const slow = questions.filter(({ duckMs }) => percentile(duckMs, 0.5) > NOTICEABLE_MS);
  return [
    judge("all questions, CPU, geometric mean", atMost(0.9), [geometricMean(questions.map(cpuRatio))]),
    ...slow.map((timed) => judge(`${timed.question.name}, CPU`, atMost(1.5), [cpuRatio(timed)])),
    ...ofKind("scan").map(({ question, archiveMs }) => judge(question.name, scanLimit(events), archiveMs)),
    ...ofKind("page").map(({ question, archiveMs }) => judge(question.name, atMostMs(100), archiveMs)),
    judge("disk per archived event", atMostBytes(50), [archived.eventBytes]),
    judge("the same with its record", atMostBytes(165), [archived.eventBytes + archived.recordBytes]),
    judge("memory while four slow searches run", { kind: "at-most", value: 700, unit: "MB" }, [
      (memory.serviceBytes + memory.postgresBytes) / 1e6,
    ]),
    judge(
      "export of a day, to COPY TO STDOUT",
      atLeast(0.8),
      exported.archive.map((rate, repeat) => rate / (exported.copy[repeat] ?? Number.NaN)),
    ),
    ...finds.map(({ name, days, ms }) => judge(name, atMostMs(days > 7 ? 3_000 : 300), ms)),
  ];
}

const atMostBytes = (value: number) => ({ kind: "at-most", value, unit: "B" }) as const;
const atMostMs = (value: number) => ({ kind: "at-most", value, unit: "ms" }) as const;

/** Two seconds are promised for days of 67,000 events. */
const scanLimit = (events: number) => atMostMs(events / DAYS < 67_000 ? 600 : 2_000);

/** Below this a ratio says nothing to a person. */
const NOTICEABLE_MS = 50;

/** Our time to DuckDB's, repeat by repeat. */
export function ratios({ archiveMs, duckMs }: TimedQuestion): number[] {
  return archiveMs.map((ms, repeat) => ms / (duckMs[repeat] ?? Number.NaN));
}

/** Our CPU time to DuckDB's. The clock ticks every 10 ms, so that a quick question's share is rough. */
export function cpuRatio({ archiveCpuMs, duckCpuMs }: TimedQuestion): number {
  return Math.max(1, archiveCpuMs) / Math.max(1, duckCpuMs);
}

function geometricMean(values: readonly number[]): number {
  return Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length);
}

/** Nearest rank. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? Number.NaN;
}
