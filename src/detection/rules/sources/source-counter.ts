import { ownText } from "#lib/text.ts";
import { isNoVisitor } from "#model/ip-address.ts";
import { SOURCE_KINDS, type SourceKind } from "#model/kinds.ts";
import { LONGEST_WINDOW, WINDOW_COUNT } from "../detection-settings.ts";
import { type CountedKey, createDistinctMembers, type UsualOf } from "./distinct-members.ts";
import { createAddressReader, type SourceEvent, toSourceKey, toSourcePath } from "./source-event.ts";

/** The largest excess of a closed minute by window, of each series. */
export type SourceMinute = Readonly<Record<SourceKind, Int32Array>>;

/** An address with fewer events in a minute than this is not busy: no fixed line is lower. */
const BUSY_EVENTS = 6;

/** More different URLs of an address in a minute are not counted. */
export const MOST_URLS = 10;

/** An address with its events, its different rules and its different URLs in one minute. */
export interface BusyAddress {
  readonly address: string;
  readonly events: number;
  readonly rules: number;
  /** At most `MOST_URLS`. */
  readonly urls: number;
}

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
  /** Returns the addresses with many events in the newest minute, if this is the minute. */
  readonly busiest: (minute: number) => readonly BusyAddress[];
  /** Returns the number of different rules of an address, by window. */
  readonly rulesOf: (address: string, minute: number) => Int32Array;
  /** Forgets the events of the newest minute by address, because the minute is to be taken again from its beginning. */
  readonly forgetMinute: () => void;
  /** Returns the number of different addresses that triggered the rule, by window. */
  readonly addressesOfRule: (ruleId: string, minute: number) => Int32Array;
}

/** `withRules` also counts the addresses of each rule. */
export function createSourceCounter({ withRules = false } = {}): SourceCounter {
  const members = ofEachKind(createDistinctMembers);
  const ipsPerRule = withRules ? createDistinctMembers() : null;
  const toAddress = createAddressReader();
  let [busyMinute, eventsOf] = [-1, new Map<string, { events: number; urls: Set<string> }>()];
  const [numberAddress, numberRule] = [createNumbering(), createNumbering()];

  function take({ ruleId, ip, asn, ja4, ua, url }: SourceEvent, minute: number): void {
    if (ip === null || isNoVisitor(ip)) return;
    const address = toAddress(ip);
    const sender = numberAddress(address, minute);
    const rule = toSourceKey(ruleId);
    ipsPerRule?.add(rule, sender, minute);
    if (rule !== "") members.rules_per_ip.add(address, numberRule(rule, minute), minute);
    if (minute !== busyMinute) [busyMinute, eventsOf] = [minute, new Map()];
    const own = eventsOf.get(address) ?? { events: 0, urls: new Set() };
    if (own.events === 0 && eventsOf.size < MAX_TEXTS) eventsOf.set(address, own);
    own.events += 1;
    if (url !== null && own.urls.size < MOST_URLS) own.urls.add(toSourceKey(url));
    if (ja4 !== null && ja4 !== "") members.ips_per_ja4.add(toSourceKey(ja4), sender, minute);
    if (url !== null && url !== "") members.ips_per_url.add(toSourcePath(url), sender, minute);
    if (ua !== null && ua !== "") members.ips_per_ua.add(toSourceKey(ua), sender, minute);
    if (asn !== null && asn !== "") members.ips_per_asn.add(toSourceKey(asn), sender, minute);
  }

  return {
    take,
    close: (minute, usualOf, remember = () => undefined) =>
      ofEachKind((kind) => {
        const remembered = { atLeast: REMEMBERED_RULES, call: remember };
        return kind === "rules_per_ip"
          ? members[kind].close(minute, usualOf, remembered)
          : members[kind].close(minute, NOTHING_USUAL);
      }),
    reaching: (kind, minute, usualOf, lines) =>
      members[kind].reaching(minute, kind === "rules_per_ip" ? usualOf : NOTHING_USUAL, lines),
    busiest(minute) {
      if (minute !== busyMinute) return [];
      const busy: BusyAddress[] = [];
      for (const [address, { events, urls }] of eventsOf)
        if (events >= BUSY_EVENTS)
          busy.push({
            address,
            events,
            rules: members.rules_per_ip.countIn(address, minute),
            urls: urls.size,
          });
      return busy;
    },
    rulesOf: (address, minute) => members.rules_per_ip.countsOf(address, minute),
    forgetMinute() {
      eventsOf = new Map();
    },
    addressesOfRule: (ruleId, minute) =>
      ipsPerRule?.countsOf(toSourceKey(ruleId), minute) ?? new Int32Array(WINDOW_COUNT),
  };
}

/** Returns a record with what `make` returns for each series. */
export function ofEachKind<T>(make: (kind: SourceKind) => T): Record<SourceKind, T> {
  return Object.fromEntries(SOURCE_KINDS.map((kind) => [kind, make(kind)])) as Record<SourceKind, T>;
}

/** The most texts of one generation. In a flood of more, a text that comes back may get another number. */
const MAX_TEXTS = 100_000;

/**
 * Returns a function that numbers texts. A text keeps its number until it has not been seen for an hour, when nothing
 * counts it any more. Minutes never go back.
 */
function createNumbering(): (text: string, minute: number) => number {
  let [newer, older] = [new Map<string, number>(), new Map<string, number>()];
  let newerSince = Number.NEGATIVE_INFINITY;
  let next = 0;
  return (text, minute) => {
    if (minute - newerSince >= LONGEST_WINDOW || newer.size >= MAX_TEXTS) {
      [newer, older] = [new Map(), newer];
      newerSince = minute;
    }
    const known = newer.get(text);
    if (known !== undefined) return known;
    const number = older.get(text) ?? next++;
    newer.set(ownText(text), number);
    return number;
  };
}
