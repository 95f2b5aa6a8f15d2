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
      readonly asciiPattern: string;
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

export interface PageQuery extends EventQuery {
  /** Zero-based. */
  readonly page: number;
  readonly pageSize: number;
}

export interface GroupQuery extends PageQuery {
  /** Not empty. */
  readonly groupBy: readonly SearchDimension[];
  readonly buckets: number;
  /** First ms of every bucket but the first, ascending. */
  readonly bucketStarts: readonly number[];
  /** Whether day_tallies hold the answer: groups by one of their dimensions, about which alone is asked. */
  readonly isCountable: boolean;
  /** Whether what day_tallies note of each event holds the answer: groups by their dimensions, about which alone is asked, each by itself. */
  readonly isCoded: boolean;
}
