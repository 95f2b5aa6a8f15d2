import type { Field } from "./fields.ts";
import type { Operator } from "./kinds.ts";

/** One clause; several values mean any of them. */
export interface Filter {
  /** The events that the clause does not match. An extension of the platform's search. */
  readonly not?: true;
  /** The host, the path and the method are extensions, too. */
  readonly field: Field;
  readonly op: Operator;
  readonly value: readonly string[];
}
