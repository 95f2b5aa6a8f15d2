import type { Verdict } from "../measure.ts";
import type { SearchBenchResult } from "../search.ts";
import { toSpread } from "../spread.ts";
import { alignColumns, showSpread, toVerdictRow } from "../tables.ts";
import { cpuRatio, percentile, ratios } from "./judge.ts";
import type { TimedQuestion } from "./time-questions.ts";

/** The verdicts and the figures behind them, for people. */
export function reportSearch(result: SearchBenchResult, verdicts: readonly Verdict[]): string {
  const { exported, archived, memory } = result;
  const repeats = result.questions[0]?.archiveMs.length ?? 0;
  const lines = [
    `${result.events} events of 90 days, ${repeats} repeats; ratios are medians of our time to DuckDB's (min .. max)`,
    "",
    ...alignColumns([
      ["", "found", "p50 ms", "p95 ms", "DuckDB p50 ms", "p95 ms", "ratio", "CPU ms", "DuckDB", "ratio"],
      ...result.questions.map(toQuestionRow),
    ]),
    "",
    `disk per archived event: ${archived.eventBytes.toFixed(1)} bytes, ${(archived.eventBytes + archived.recordBytes).toFixed(0)} with its record;` +
      ` CPU of archiving it: ${archived.cpuUs === null ? "not measured" : `${archived.cpuUs.toFixed(0)} us`}`,
    `memory while four slow searches run: ${megabytes(memory.serviceBytes)} in the service and DuckDB,` +
      ` ${megabytes(memory.postgresBytes)} more in Postgres`,
    `export of a day, ${exported.rows} events: ${showSpread(toSpread(exported.archive), 0)} events/s over HTTP,` +
      ` COPY ${showSpread(toSpread(exported.copy), 0)}`,
    `memory of the serving process at most: ${megabytes(exported.afterDayBytes)} after exports of a day,` +
      ` ${megabytes(exported.afterMonthBytes)} after one of ${exported.monthRows} events`,
    "",
    ...alignColumns([["", "measured", "", "limit"], ...verdicts.map(toVerdictRow)]),
  ];
  return `${lines.join("\n")}\n`;
}

function toQuestionRow(timed: TimedQuestion): string[] {
  const { question, archiveMs, duckMs, total } = timed;
  const times = [archiveMs, duckMs].flatMap((ms) => [percentile(ms, 0.5), percentile(ms, 0.95)]);
  return [
    question.name,
    String(total),
    ...times.map((ms) => ms.toFixed(1)),
    showSpread(toSpread(ratios(timed)), 2),
    timed.archiveCpuMs.toFixed(0),
    timed.duckCpuMs.toFixed(0),
    cpuRatio(timed).toFixed(2),
  ];
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(0)} MB`;
}
