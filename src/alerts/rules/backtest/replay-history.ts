/** What a replay knows of the time before: senders, usual values and nearby rules. */

import { toSourceAddress } from "#detection/rules/sources/source-event.ts";
import {
  createUses,
  type NearbyRule,
  type UsualValues,
  type VerdictEvent,
} from "#detection/rules/verdict/evidence.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import type { UsualDimension } from "#model/kinds.ts";

/** Pairs of an address and a rule that are kept. */
const MOST_PAIRS = 200_000;
const DAY_HOURS = DAY_MS / HOUR_MS;

/** Keeps the events of each address and of each rule of a zone by hour. Times are epoch ms and never go back. */
export function createSenderHistory() {
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
    take(ip: string, ruleId: string, at: number): void {
      const hour = Math.floor(at / HOUR_MS);
      if (hour > cleaned) clean(hour);
      add(rules, ruleId, hour);
      // In a flood, pairs that come later are left out until old ones are forgotten.
      if (ip === "" || size > MOST_PAIRS) return;
      const byRule = get(pairs, toSourceAddress(ip), () => new Map<string, Map<number, number>>());
      if (!byRule.has(ruleId)) size += 1;
      add(byRule, ruleId, hour);
    },
    /** Returns of these addresses the most events of the rule, or of any if it is null, in one of the 24 hours before. */
    read(ips: Iterable<string>, ruleId: string | null, before: number): Map<string, number> {
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
    /** Returns the events of the rule in an hour of these, on average. */
    perHour(ruleId: string, before: number): number {
      const hour = Math.floor(before / HOUR_MS);
      let sum = 0;
      for (const [one, count] of rules.get(ruleId) ?? [])
        if (one < hour && one >= hour - DAY_HOURS) sum += count;
      return sum / DAY_HOURS;
    },
  };
}

function add(counts: Map<string, Map<number, number>>, ruleId: string, hour: number): void {
  const hours = get(counts, ruleId, () => new Map<number, number>());
  hours.set(hour, (hours.get(hour) ?? 0) + 1);
}

function get<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

/** Learns what is usual in a zone from events in the order of time, a UTC day at a time, as the service does at night. */
export function createUsualReplay() {
  const uses = createUses();
  let [days, today, hasCookies]: [number, number | null, boolean] = [0, null, false];
  let usual = learn();

  function learn(): UsualValues {
    const found = uses.find();
    const of = (dimension: UsualDimension) =>
      new Set(found.flatMap((one) => (one.dimension === dimension ? [one.value] : [])));
    return { asns: of("asn"), ja4s: of("ja4"), paths: of("path"), days, hasCookies };
  }

  return {
    take({ at, ip, asn, ja4 }: VerdictEvent, template: string, hasSession: boolean): void {
      const day = Math.floor(at / DAY_MS);
      if (today !== null && day !== today) {
        days += 1;
        usual = learn();
      }
      today = day;
      uses.note({ dimension: "asn", value: asn, user: String(day), at });
      uses.note({ dimension: "ja4", value: ja4, user: ip, at });
      uses.note({ dimension: "path", value: template, user: ip, at });
      hasCookies ||= hasSession;
    },
    /** Returns the values that were usual when the day of the latest event began. */
    read: (): UsualValues => ({ ...usual, hasCookies }),
  };
}

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
      const rules = get(addresses, ip, () => new Map<string, NearbyRule & { at: number }>());
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
