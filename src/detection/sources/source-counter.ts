import { createDistinctMembers, type DistinctMinute, type UsualOf } from "./distinct-members.ts";
import { type SourceEvent, toSourceAddress, toSourceKey, toSourcePath } from "./source-event.ts";
import type { SourceKind } from "./source-kinds.ts";

/** The counts of a closed minute, by series. */
export type SourceMinute = Readonly<Record<SourceKind, DistinctMinute>>;

/** An address that triggered this many rules in an hour is remembered for the address's usual count. */
const REMEMBERED_RULES = 5;
const NOTHING_USUAL: UsualOf = () => undefined;

/** Counts the sources of one zone. Events come in the order of their minutes. */
export interface SourceCounter {
  readonly take: (event: SourceEvent, minute: number) => void;
  /**
   * Returns the counts of a minute that is over. `remember` is called with each address that triggered many rules,
   * and with its counts.
   */
  readonly close: (
    minute: number,
    usualOf: UsualOf,
    remember?: (address: string, counts: ArrayLike<number>) => void,
  ) => SourceMinute;
  /** Returns the number of different addresses that triggered the rule, by window. */
  readonly addressesOfRule: (ruleId: string, minute: number) => Int32Array;
}

export function createSourceCounter(): SourceCounter {
  const byKind = {
    rules_per_ip: createDistinctMembers(),
    ips_per_ja4: createDistinctMembers(),
    ips_per_url: createDistinctMembers(),
    ips_per_ua: createDistinctMembers(),
    ips_per_asn: createDistinctMembers(),
  };
  const byRule = createDistinctMembers();

  function take({ ruleId, ip, asn, ja4, ua, url }: SourceEvent, minute: number): void {
    if (ip === null || ip === "") return;
    const address = toSourceAddress(ip);
    const rule = toSourceKey(ruleId);
    byRule.add(rule, address, minute);
    if (rule !== "") byKind.rules_per_ip.add(address, rule, minute);
    const keyed: [Exclude<SourceKind, "rules_per_ip">, string][] = [
      ["ips_per_ja4", toSourceKey(ja4)],
      ["ips_per_url", url === null ? "" : toSourcePath(url)],
      ["ips_per_ua", toSourceKey(ua)],
      ["ips_per_asn", toSourceKey(asn)],
    ];
    for (const [kind, key] of keyed) if (key !== "") byKind[kind].add(key, address, minute);
  }

  return {
    take,
    close: (minute, usualOf, remember) => ({
      rules_per_ip: byKind.rules_per_ip.close(minute, usualOf, (address, counts) => {
        if ((counts[2] as number) >= REMEMBERED_RULES) remember?.(address, counts);
      }),
      ips_per_ja4: byKind.ips_per_ja4.close(minute, NOTHING_USUAL),
      ips_per_url: byKind.ips_per_url.close(minute, NOTHING_USUAL),
      ips_per_ua: byKind.ips_per_ua.close(minute, NOTHING_USUAL),
      ips_per_asn: byKind.ips_per_asn.close(minute, NOTHING_USUAL),
    }),
    addressesOfRule: (ruleId, minute) => byRule.countsOf(toSourceKey(ruleId), minute),
  };
}
