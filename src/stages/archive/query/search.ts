import type { Field, Filter } from "#model/fields.ts";

/** A search or export body after the clamps of platform API spec 2.3. Times are epoch ms, the window is [from, to). */
export interface Search {
  readonly from: number;
  readonly to: number;
  /** Empty without free text. */
  readonly query: string;
  readonly filters: readonly Filter[];
  /** Empty for flat rows; no dimension twice. */
  readonly groupBy: readonly Field[];
  /** The names by which the groups were asked for; the fields themselves in a request of the platform's form. */
  readonly groupNames?: readonly string[];
  /** 0 for no sparkline. */
  readonly buckets: number;
  readonly page: number;
  readonly pageSize: number;
}

/** The mistakes by field, worded as in the platform's validation answers. */
export type Mistakes = Record<string, string[]>;
