import { checkWindow } from "#stages/archive/check-window.ts";
import { refuseHidden } from "#stages/archive/mask/refuse-hidden.ts";
import { refuseManyTests } from "#stages/archive/query/count-tests.ts";
import { planSearch, type SearchPlan } from "#stages/archive/query/plan-search.ts";
import { readSearch, type SearchForm } from "#stages/archive/query/read-search.ts";
import type { Mistakes } from "#stages/archive/query/search.ts";

export interface SearchRequest {
  readonly zoneId: number;
  readonly plan: SearchPlan;
  readonly isMasked: boolean;
}

/** Returns the plan of a body, or everything that is wrong with it. */
export function planBody(
  body: unknown,
  { nowMs, retentionDays, isMasked }: { nowMs: number; retentionDays: number; isMasked: boolean },
  { kind, form }: { readonly kind: "search" | "export"; readonly form: SearchForm },
): Omit<SearchRequest, "zoneId"> | { readonly mistakes: Mistakes } {
  const tooMany = refuseManyTests(body);
  if (tooMany !== null) return { mistakes: tooMany };
  const read = readSearch(body, kind, form);
  if ("mistakes" in read) return read;
  const { search } = read;
  const mistakes = checkWindow(search, { nowMs, retentionDays }) ?? (isMasked ? refuseHidden(search) : null);
  if (mistakes !== null) return { mistakes };
  return { plan: planSearch(search, { isMasked }), isMasked };
}
