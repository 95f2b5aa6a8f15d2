import type { Field } from "#model/fields.ts";
import type { Operator } from "#model/kinds.ts";

/** One clause; several values mean any of them. */
export interface Filter {
  /** The events that the clause does not match. An extension of the platform's search. */
  readonly not?: true;
  /** The host, the path and the method are extensions, too. */
  readonly field: Field;
  readonly op: Operator;
  readonly value: readonly string[];
}

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
