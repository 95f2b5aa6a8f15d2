type Work = { readonly text: string } | { readonly value: unknown };

/** Pushes the parts of a list or object onto the stack, the last part first. */
function unfold(work: Work[], value: object): void {
  const isList = Array.isArray(value);
  const members: [name: string, item: unknown][] = isList
    ? value.map((item: unknown) => ["", item ?? null])
    : Object.entries(value).filter(([, item]) => item !== undefined);
  work.push({ text: isList ? "]" : "}" });
  for (let at = members.length - 1; at >= 0; at--) {
    const [name, item] = members[at] ?? ["", null];
    const comma = at === 0 ? "" : ",";
    work.push({ value: item }, { text: isList ? comma : `${comma}${JSON.stringify(name)}:` });
  }
  work.push({ text: isList ? "[" : "{" });
}

/** Returns JSON on one line without recursion, which fails at a few thousand levels. For values that came from JSON. */
function stringifyDeep(root: unknown): string {
  const parts: string[] = [];
  const work: Work[] = [{ value: root }];
  for (let next = work.pop(); next !== undefined; next = work.pop()) {
    if ("text" in next) parts.push(next.text);
    else if (typeof next.value === "object" && next.value !== null) unfold(work, next.value);
    else parts.push(JSON.stringify(next.value) ?? "null");
  }
  return parts.join("");
}

/**
 * Returns a value as JSON. An event may be nested deeper than JSON.stringify supports; such a value is returned on one
 * line.
 */
export function stringify(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent) ?? "null";
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    return stringifyDeep(value);
  }
}
