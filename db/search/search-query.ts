import type { SearchColumn } from "#model/search-columns.ts";

/** Test of one text; the stage `search` says how each form comes about. A null counts as ''. */
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

/** Events in [from, to), epoch ms, for which every clause holds. */
export interface EventQuery {
  readonly from: number;
  readonly to: number;
  readonly clauses: readonly SearchClause[];
}
