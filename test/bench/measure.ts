import { type Spread, toSpread } from "./spread.ts";

interface Limit {
  readonly kind: "at-least" | "at-most";
  readonly value: number;
  readonly unit: "x" | "B" | "MB" | "ms";
}

/** A measure that has a limit; `spread` is null and so `isMet` when it could not be taken. */
export interface Verdict {
  readonly name: string;
  readonly limit: Limit;
  readonly spread: Spread | null;
  readonly isMet: boolean | null;
}

export function atLeast(value: number): Limit {
  return { kind: "at-least", value, unit: "x" };
}

export function atMost(value: number): Limit {
  return { kind: "at-most", value, unit: "x" };
}

/** The median of the values against the limit. */
export function judge(name: string, limit: Limit, values: readonly number[]): Verdict {
  const spread = toSpread(values);
  if (spread === null) return { name, limit, spread, isMet: null };
  const { median } = spread;
  return {
    name,
    limit,
    spread,
    isMet: limit.kind === "at-least" ? median >= limit.value : median <= limit.value,
  };
}
