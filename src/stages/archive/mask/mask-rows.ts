import { maskAddress } from "./mask.ts";

interface CountedValue {
  readonly value: string;
  readonly count: number;
  readonly share: number;
}

/** Counted addresses, masked; networks that are the same now are counted together. */
export function maskRows(rows: readonly CountedValue[]): CountedValue[] {
  const merged = new Map<string, CountedValue>();
  for (const { value, count, share } of rows) {
    const masked = maskAddress(value);
    const seen = merged.get(masked) ?? { value: masked, count: 0, share: 0 };
    merged.set(masked, { ...seen, count: seen.count + count, share: Math.min(seen.share + share, 1) });
  }
  return [...merged.values()];
}
