import { DAY_MS } from "#lib/units.ts";
import type { NearbyRule } from "#stages/detection/verdict/evidence.ts";

/** Pairs of an address with a rule on a path that are kept. */
const MOST_PAIRS = 200_000;

/** Keeps which rules each address of a zone triggered on which paths within 24 hours. Times are epoch ms and never go back. */
export function createNearbyRules() {
  const addresses = new Map<string, Map<string, NearbyRule & { at: number }>>();
  let pairs = 0;

  function forget(before: number): void {
    pairs = 0;
    for (const [ip, rules] of addresses) {
      for (const [key, { at }] of rules) if (at < before) rules.delete(key);
      if (rules.size === 0) addresses.delete(ip);
      pairs += rules.size;
    }
    // In a flood, those of the addresses that were seen first.
    for (const [ip, { size }] of addresses) {
      if (pairs <= MOST_PAIRS / 2) break;
      addresses.delete(ip);
      pairs -= size;
    }
  }

  return {
    take({ ip, ruleId, template }: NearbyRule, at: number): void {
      if (ip === "") return;
      const rules = addresses.get(ip) ?? new Map<string, NearbyRule & { at: number }>();
      if (rules.size === 0) addresses.set(ip, rules);
      const key = `${ruleId} ${template}`;
      const known = rules.get(key);
      if (known !== undefined) known.at = at;
      else {
        rules.set(key, { ip, ruleId, template, at });
        pairs += 1;
      }
      if (pairs > MOST_PAIRS) forget(at - DAY_MS);
    },
    read(ips: Iterable<string>, at: number): NearbyRule[] {
      return Array.from(ips, (ip) => [...(addresses.get(ip)?.values() ?? [])])
        .flat()
        .filter((rule) => rule.at >= at - DAY_MS);
    },
  };
}
