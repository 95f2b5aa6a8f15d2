export const FILTER_RULE =
  "field:op:value[,value] such as ip:cidr:203.0.113.0/24; write \\, for a comma in a value";

/** Splits `field:op:value[,value]` without checking the parts. The value may contain colons. Returns null without three parts. */
export function parseFilter(text: string): { field: string; op: string; value: string[] } | null {
  const match = /^([^:]*):([^:]*):(.*)$/s.exec(text);
  if (match === null) return null;
  const [, field = "", op = "", values = ""] = match;
  const value = values.split(/(?<!\\),/).map((part) => part.replaceAll("\\,", ","));
  return { field, op, value };
}
