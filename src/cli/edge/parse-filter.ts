export const FILTER_RULE =
  "field:op:value[,value] such as ip:cidr:203.0.113.0/24; write \\, for a comma in a value";

/** `field:op:value[,value]` in its parts, unchecked; the value may hold colons. Null when there are not three parts. */
export function parseFilter(text: string): { field: string; op: string; value: string[] } | null {
  const match = /^([^:]*):([^:]*):(.*)$/s.exec(text);
  if (match === null) return null;
  const [, field = "", op = "", values = ""] = match;
  const value = values.split(/(?<!\\),/).map((part) => part.replaceAll("\\,", ","));
  return { field, op, value };
}
