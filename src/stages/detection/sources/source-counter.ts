import type { SourceKind } from "#model/kinds.ts";
import { WINDOW_COUNT } from "../thresholds/windows.ts";
import { type CountedKey, createDistinctMembers, type UsualOf } from "./distinct-members.ts";
import { createNumbering } from "./numbering.ts";
import { createAddressReader, type SourceEvent, toSourceKey, toSourcePath } from "./source-event.ts";

/** The largest excess of a closed minute by window, of each series. */
export type SourceMinute = Readonly<Record<SourceKind, Int32Array>>;

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
  /** Returns the keys of a series whose excess reaches the line of a window in a minute that was just closed. */
  readonly reaching: (
    kind: SourceKind,
    minute: number,
    usualOf: UsualOf,
    lines: ArrayLike<number>,
  ) => CountedKey[];
  /** Returns the number of different addresses that triggered the rule, by window. */
  readonly addressesOfRule: (ruleId: string, minute: number) => Int32Array;
}

/** `withRules` also counts the addresses of each rule. */
export function createSourceCounter({ withRules = false } = {}): SourceCounter {
  const members = {
    rules_per_ip: createDistinctMembers(),
    ips_per_ja4: createDistinctMembers(),
    ips_per_url: createDistinctMembers(),
    ips_per_ua: createDistinctMembers(),
    ips_per_asn: createDistinctMembers(),
  };
  const ipsPerRule = withRules ? createDistinctMembers() : null;
  const toAddress = createAddressReader();
  const [numberAddress, numberRule] = [createNumbering(), createNumbering()];

  function take({ ruleId, ip, asn, ja4, ua, url }: SourceEvent, minute: number): void {
    if (ip === null || ip === "") return;
    const address = toAddress(ip);
    const sender = numberAddress(address, minute);
    const rule = toSourceKey(ruleId);
    ipsPerRule?.add(rule, sender, minute);
    if (rule !== "") members.rules_per_ip.add(address, numberRule(rule, minute), minute);
    if (ja4 !== null && ja4 !== "") members.ips_per_ja4.add(toSourceKey(ja4), sender, minute);
    if (url !== null && url !== "") members.ips_per_url.add(toSourcePath(url), sender, minute);
    if (ua !== null && ua !== "") members.ips_per_ua.add(toSourceKey(ua), sender, minute);
    if (asn !== null && asn !== "") members.ips_per_asn.add(toSourceKey(asn), sender, minute);
  }

  return {
    take,
    close: (minute, usualOf, remember = () => undefined) => ({
      rules_per_ip: members.rules_per_ip.close(minute, usualOf, {
        atLeast: REMEMBERED_RULES,
        call: remember,
      }),
      ips_per_ja4: members.ips_per_ja4.close(minute, NOTHING_USUAL),
      ips_per_url: members.ips_per_url.close(minute, NOTHING_USUAL),
      ips_per_ua: members.ips_per_ua.close(minute, NOTHING_USUAL),
      ips_per_asn: members.ips_per_asn.close(minute, NOTHING_USUAL),
    }),
    reaching: (kind, minute, usualOf, lines) =>
      members[kind].reaching(minute, kind === "rules_per_ip" ? usualOf : NOTHING_USUAL, lines),
    addressesOfRule: (ruleId, minute) =>
      ipsPerRule?.countsOf(toSourceKey(ruleId), minute) ?? new Int32Array(WINDOW_COUNT),
  };
}
