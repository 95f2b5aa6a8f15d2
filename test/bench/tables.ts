import type { Verdict } from "./measure.ts";
import type { Spread } from "./spread.ts";

export function toVerdictRow({ name, limit, spread, isMet }: Verdict): string[] {
  const digits = limit.unit === "x" ? 2 : 0;
  const sign = limit.kind === "at-least" ? "≥" : "≤";
  const mark = isMet === null ? "not measured" : isMet ? "✓" : "✗ missed";
  const measured = spread === null ? "" : `${spread.median.toFixed(digits)} ${limit.unit}`;
  return [name, measured, showRange(spread, digits), `${sign} ${limit.value} ${limit.unit}`, mark];
}

export function showSpread(spread: Spread | null, digits: number): string {
  return spread === null ? "-" : `${spread.median.toFixed(digits)} ${showRange(spread, digits)}`;
}

export function showRange(spread: Spread | null, digits: number): string {
  return spread === null ? "" : `(${spread.min.toFixed(digits)} .. ${spread.max.toFixed(digits)})`;
}

export function alignColumns(rows: readonly (readonly string[])[]): string[] {
  const width = (column: number) => Math.max(...rows.map((row) => row[column]?.length ?? 0));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(width(column)))
      .join("   ")
      .trimEnd(),
  );
}
