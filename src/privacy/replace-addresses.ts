/**
 * Anything that may be an address inside a text: four decimal parts (the last may be masked), groups with colons, a
 * pseudonym. Every part is bounded, so that hostile text costs no more than its length.
 */
const CANDIDATE =
  /anon-[a-z2-7]{13}-[a-z2-7]{13}|(?<![0-9A-Za-z:.])(?:[0-9A-Fa-f]{0,4}:){2,8}(?:(?:\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f]{1,4})?(?![0-9A-Za-z])|(?<![0-9.])(?:\d{1,3}\.){3}(?:\d{1,3}|\*)(?!\d)/g;

/** What is to stand in an address's place; null leaves it. */
export type Replace = (ip: string) => string | null;

export function replaceAddresses(text: string, replace: Replace): string {
  return text.replace(CANDIDATE, (found) => replace(found) ?? found);
}

/** Lists that say who was behind the events, in evidence and in messages. */
const ADDRESSES = ["ip", "ips"];
/** Lists beside them, of what the same events had else. */
const TRAITS = ["path", "paths", "ua", "userAgents", "ja4", "ja4s"];

/**
 * Replaces addresses in every string of a JSON value; the value itself where there was none. With `dropTraits` the
 * paths, user agents and fingerprints go that were counted together with a replaced address: they may be as personal,
 * and nothing says whose they were.
 */
export function replaceInJson(
  value: unknown,
  replace: Replace,
  { dropTraits }: { dropTraits: boolean },
): unknown {
  if (typeof value === "string") return replaceAddresses(value, replace);
  if (Array.isArray(value))
    return keepIfSame(
      value,
      value.map((item: unknown) => replaceInJson(item, replace, { dropTraits })),
    );
  if (typeof value !== "object" || value === null) return value;
  const before = Object.entries(value);
  const after = before.map(([name, item]) => [name, replaceInJson(item, replace, { dropTraits })] as const);
  const isHit =
    dropTraits &&
    after.some(([name, item], index) => ADDRESSES.includes(name) && item !== before[index]?.[1]);
  const kept = isHit
    ? after.map(([name, item]) => [name, TRAITS.includes(name) && Array.isArray(item) ? [] : item] as const)
    : after;
  const isSame = kept.every(([, item], index) => item === before[index]?.[1]);
  return isSame ? value : Object.fromEntries(kept);
}

function keepIfSame(before: readonly unknown[], after: readonly unknown[]): readonly unknown[] {
  return after.every((item, index) => item === before[index]) ? before : after;
}
