import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { toSourceAddress } from "#stages/detection/sources/source-event.ts";

/** Pairs of an address and a rule that are kept. In a flood, those that were seen first are forgotten. */
const MOST_PAIRS = 200_000;
const DAY_HOURS = DAY_MS / HOUR_MS;

/** The events of each sender of a zone in the 24 hours before a given time. */
export interface SenderHistory {
  readonly take: (ip: string, ruleId: string, at: number) => void;
  /** Returns of these addresses the most events of the rule, or of any if it is null, in one of the hours before. */
  readonly read: (ips: Iterable<string>, ruleId: string | null, before: number) => Map<string, number>;
  /** Returns the events of the rule in an hour of these, on average. */
  readonly perHour: (ruleId: string, before: number) => number;
}

/** Keeps the events of each address and of each rule by hour. Times are epoch ms and never go back. */
export function createSenderHistory(): SenderHistory {
  const pairs = new Map<string, Map<string, Map<number, number>>>();
  const rules = new Map<string, Map<number, number>>();
  let size = 0;
  let cleaned = 0;

  function clean(hour: number): void {
    cleaned = hour;
    size = 0;
    for (const [address, byRule] of pairs) {
      for (const [rule, hours] of byRule) {
        for (const one of hours.keys()) if (one < hour - DAY_HOURS) hours.delete(one);
        if (hours.size === 0) byRule.delete(rule);
      }
      if (byRule.size === 0) pairs.delete(address);
      size += byRule.size;
    }
    for (const hours of rules.values())
      for (const one of hours.keys()) if (one < hour - DAY_HOURS) hours.delete(one);
  }

  return {
    take(ip, ruleId, at) {
      const hour = Math.floor(at / HOUR_MS);
      if (hour > cleaned || size > MOST_PAIRS) clean(hour);
      add(
        get(rules, ruleId, () => new Map<number, number>()),
        hour,
      );
      if (ip === "" || size > MOST_PAIRS) return;
      const byRule = get(pairs, toSourceAddress(ip), () => new Map<string, Map<number, number>>());
      if (!byRule.has(ruleId)) size += 1;
      add(
        get(byRule, ruleId, () => new Map<number, number>()),
        hour,
      );
    },
    read(ips, ruleId, before) {
      const hour = Math.floor(before / HOUR_MS);
      const found = new Map<string, number>();
      for (const ip of ips) {
        const address = toSourceAddress(ip);
        const byHour = new Map<number, number>();
        for (const [rule, hours] of pairs.get(address) ?? [])
          if (ruleId === null || rule === ruleId)
            for (const [one, count] of hours)
              if (one < hour && one >= hour - DAY_HOURS) byHour.set(one, (byHour.get(one) ?? 0) + count);
        if (byHour.size > 0) found.set(address, Math.max(...byHour.values()));
      }
      return found;
    },
    perHour(ruleId, before) {
      const hour = Math.floor(before / HOUR_MS);
      let sum = 0;
      for (const [one, count] of rules.get(ruleId) ?? [])
        if (one < hour && one >= hour - DAY_HOURS) sum += count;
      return sum / DAY_HOURS;
    },
  };
}

function add(counts: Map<number, number>, hour: number): void {
  counts.set(hour, (counts.get(hour) ?? 0) + 1);
}

function get<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}
