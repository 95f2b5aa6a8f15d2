import { MINUTE_MS } from "#lib/units.ts";
import { type SourceEvent, toSourceAddress, toSourcePath } from "./source-event.ts";

/** A scanner triggers so many different rules with one address in its first seconds. */
const MANY_RULES = 5;
/** A botnet brings so many different addresses with one fingerprint, or on one path, in its first seconds. */
const MANY_ADDRESSES = 10;

/**
 * Returns whether the events of the last minute look like an attack that begins: one address with many rules, or many
 * addresses with one JA4 or on one path. Everyday traffic may look so, too: it decides only how soon a zone is polled again.
 */
export function looksRising(
  events: readonly (SourceEvent & { readonly occurredAt: number })[],
  nowMs: number,
): boolean {
  const members = new Map<string, Set<string>>();
  const reaches = (key: string, member: string | null, most: number) => {
    if (!member) return false;
    const found = members.get(key) ?? new Set();
    members.set(key, found.add(member));
    return found.size >= most;
  };
  return events.some(({ occurredAt, ip, ruleId, ja4, url }) => {
    if (occurredAt <= nowMs - MINUTE_MS) return false;
    const address = ip ? toSourceAddress(ip) : null;
    return (
      (address !== null && reaches(`ip ${address}`, ruleId, MANY_RULES)) ||
      (ja4 && reaches(`ja4 ${ja4}`, address, MANY_ADDRESSES)) ||
      (url && reaches(`url ${toSourcePath(url)}`, address, MANY_ADDRESSES))
    );
  });
}
