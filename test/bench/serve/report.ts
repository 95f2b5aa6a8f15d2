import { atLeast, judge, type Verdict } from "../measure.ts";
import type { ServeBenchResult } from "../serve.ts";
import { toSpread } from "../spread.ts";
import { alignColumns, showSpread, toVerdictRow } from "../tables.ts";

export function judgeServe({ alone, loaded }: ServeBenchResult): Verdict[] {
  const ratios = loaded.map((rate, repeat) => rate / (alone[repeat] ?? Number.NaN));
  return [judge("ingest while searches run, to ingest alone", atLeast(0.8), ratios)];
}

export function reportServe(result: ServeBenchResult, verdicts: readonly Verdict[]): string {
  const { question, alone, loaded, load } = result;
  const spreadOf = (pick: (index: number) => number) =>
    showSpread(toSpread(load.map((_, index) => pick(index))), 0);
  const lines = [
    `ingest, events/s: ${showSpread(toSpread(alone), 0)} alone, ${showSpread(toSpread(loaded), 0)} while asked without a pause: ${question}`,
    `searches meanwhile: ${spreadOf((index) => load[index]?.requests ?? 0)} answered,` +
      ` p50 ${spreadOf((index) => load[index]?.p50Ms ?? 0)} ms, p97.5 ${spreadOf((index) => load[index]?.p97Ms ?? 0)} ms,` +
      ` ${load.reduce((sum, { failed }) => sum + failed, 0)} failed`,
    "",
    ...alignColumns([["", "measured", "", "limit"], ...verdicts.map(toVerdictRow)]),
  ];
  return `${lines.join("\n")}\n`;
}
