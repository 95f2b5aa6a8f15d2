/** The columns of waf_events that can be asked, as the search language names them; a rule's name is its message. */
export const SEARCH_COLUMNS = {
  feature: "feature",
  ruleId: "rule_id",
  ip: "ip",
  ja4: "ja4",
  ua: "ua",
  url: "url",
  asn: "asn",
  country: "country",
  action: "action",
  message: "message",
} as const;
export type SearchColumn = keyof typeof SEARCH_COLUMNS;
export type SearchDimension = Exclude<SearchColumn, "message">;

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

/** Some column passes some test. */
export interface SearchClause {
  readonly columns: readonly SearchColumn[];
  readonly tests: readonly SearchTest[];
}

/** Which events: those of [from, to), epoch ms, of which every clause holds. */
export interface EventQuery {
  readonly from: number;
  readonly to: number;
  readonly clauses: readonly SearchClause[];
}
