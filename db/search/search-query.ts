import type { SearchColumn } from "#model/search-columns.ts";

/** What one text is asked; the stage `search` says how each form comes about. A null counts as ''. */
export type SearchTest =
  | { readonly kind: "anything" }
  | { readonly kind: "equals"; readonly texts: readonly string[] }
  | { readonly kind: "within" | "withinAny"; readonly networks: readonly string[] }
  | {
      readonly kind: "like";
      readonly pattern: string;
      readonly foldFrom: string;
      readonly foldTo: string;
    }
  | {
      readonly kind: "likeAny";
      readonly patterns: readonly string[];
      readonly foldFrom: string;
      readonly foldTo: string;
    };

/** Some column passes some test; negated, none does. */
export interface SearchClause {
  readonly isNegated?: true;
  readonly columns: readonly SearchColumn[];
  readonly tests: readonly SearchTest[];
}

/** Which events: those of [from, to), epoch ms, of which every clause holds. */
export interface EventQuery {
  readonly from: number;
  readonly to: number;
  readonly clauses: readonly SearchClause[];
}
