import { checkWindow } from "../../archive/check-window.ts";
import { planSearch, type SearchPlan } from "../../archive/query/plan-search.ts";
import { readSearch } from "../../archive/query/read-search.ts";
import type { Mistakes } from "../../archive/query/search.ts";
import type { Config } from "../../config/config.ts";
import { UsageError } from "../../lib/errors.ts";
import type { FlagReader } from "../edge/flag-reader.ts";

/** Returns the plan of a request that was read from flags, or undefined after a mistake. */
export function planAsked(
  read: FlagReader,
  request: unknown,
  kind: "search" | "export",
): SearchPlan | undefined {
  if (request === undefined) return undefined;
  const result = readSearch(request, kind);
  if ("search" in result) return planSearch(result.search);
  read.mistakes.push(...listMistakes(result.mistakes));
  return undefined;
}

/** @throws {UsageError} for a window that ends in the future or before the retention. */
export function requireKept(plan: SearchPlan, { retention }: Pick<Config, "retention">, nowMs: number): void {
  const mistakes = checkWindow(plan, { nowMs, retentionDays: retention.eventDays });
  if (mistakes !== null) throw new UsageError(listMistakes(mistakes));
}

function listMistakes(mistakes: Mistakes): string[] {
  return Object.values(mistakes).flat();
}
