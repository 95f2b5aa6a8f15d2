/** What events can be filtered and grouped by, as the platform names it (platform API spec 2.3). */
export const DIMENSIONS = [
  "feature",
  "ruleId",
  "ip",
  "ja4",
  "ua",
  "url",
  "asn",
  "country",
  "action",
] as const;
export type Dimension = (typeof DIMENSIONS)[number];

export const OPERATORS = ["eq", "in", "contains", "cidr", "wildcard"] as const;
type Operator = (typeof OPERATORS)[number];

/** One clause; several values mean any of them. */
export interface Filter {
  readonly field: Dimension;
  readonly op: Operator;
  readonly value: readonly string[];
}

/** A search or export body after the clamps of platform API spec 2.3. Times are epoch ms, the window is [from, to). */
export interface Search {
  readonly from: number;
  readonly to: number;
  /** Empty for no free text. */
  readonly query: string;
  readonly filters: readonly Filter[];
  /** Empty for flat rows; no dimension twice. */
  readonly groupBy: readonly Dimension[];
  /** 0 for no sparkline. */
  readonly buckets: number;
  readonly page: number;
  readonly pageSize: number;
}

/** Field -> what is wrong with it, as the platform's validation answers word it. */
export type Mistakes = Record<string, string[]>;
