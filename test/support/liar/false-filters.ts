import type { ActiveLie } from "./lie.ts";
import type { SearchRow } from "./true-platform.ts";

interface Filter {
  readonly field: string;
  readonly op: string;
  readonly value: readonly string[];
}

/**
 * Splits the filters of a search into those that the emulator applies to the true values and those that the liar
 * applies to the false ones. The jobs filter by `eq` and `in` only.
 */
export function splitFilters(
  given: unknown,
  lies: readonly ActiveLie[],
): { readonly byPlatform: readonly Filter[]; readonly byLiar: readonly Filter[] } {
  const filters = Array.isArray(given) ? (given as readonly Filter[]) : [];
  const isFalse = ({ field, op }: Filter) =>
    (op === "eq" || op === "in") &&
    lies.some(({ kind, fields }) => kind === "wrongValue" && field in (fields ?? {}));
  return { byPlatform: filters.filter((one) => !isFalse(one)), byLiar: filters.filter(isFalse) };
}

export function matchesFilters({ fields }: SearchRow, filters: readonly Filter[]): boolean {
  return filters.every(({ field, value }) => value.includes(fields[field] ?? ""));
}
