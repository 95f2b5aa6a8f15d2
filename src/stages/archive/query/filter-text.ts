export const FILTER_RULE =
  "field:op:value[,value] such as ip:cidr:203.0.113.0/24; write \\, for a comma in a value";

/** A filter as a person wrote it. No part is checked. */
export interface WrittenFilter {
  readonly field: string;
  readonly op: string;
  readonly value: string[];
}

/** Splits `field:op:value[,value]` without checking the parts. The value may contain colons. Returns null without three parts. */
export function parseFilter(text: string): WrittenFilter | null {
  const match = /^([^:]*):([^:]*):(.*)$/s.exec(text);
  if (match === null) return null;
  const [, field = "", op = "", values = ""] = match;
  const value = values.split(/(?<!\\),/).map((part) => part.replaceAll("\\,", ","));
  return { field, op, value };
}

/** Returns the filter as a body of the form `native` has it, where `not` is a member. In a text it begins the operator. */
export function toNativeFilter({ op, ...filter }: WrittenFilter): WrittenFilter & { readonly not?: true } {
  return op.startsWith("not-") ? { ...filter, op: op.slice(4), not: true } : { ...filter, op };
}
