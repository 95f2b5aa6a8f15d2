/** What an alert is about, and the matchers that name it. */

import { addressBits, readAddress, readNetworkNumber, readSentAddress } from "./ip-address.ts";
import { type Severity, SOURCE_TRAITS, type SourceKind, type SourceTrait } from "./kinds.ts";

/** The facts that routes, inhibitions and quiet hours match. */
export interface Subject {
  /** One of `SUBJECT_KINDS`. */
  readonly kind: string;
  /** Null if the alert is about Longwatch itself and not about a zone. */
  readonly zoneId: number | null;
  readonly ruleId: string | null;
  /** The rules of an alert about several; one of them is enough. */
  readonly rules?: readonly string[];
  readonly severity: Severity;
  /** The sources that the alert is about. */
  readonly traits?: SourceTraits;
}

/**
 * The values to match. Each given member must match one of its values. An empty object matches everything. A rule may
 * end in `*`.
 */
export interface SubjectMatchers extends SourceMatchers {
  readonly zone?: readonly number[] | undefined;
  readonly rule?: readonly string[] | undefined;
  readonly severity?: readonly Severity[] | undefined;
  readonly kind?: readonly string[] | undefined;
}

export function matchesSubject(matchers: SubjectMatchers, subject: Subject): boolean {
  const { zone, rule, severity, kind } = matchers;
  const ids = subject.rules ?? [subject.ruleId];
  return (
    (zone === undefined || (subject.zoneId !== null && zone.includes(subject.zoneId))) &&
    (rule === undefined || rule.some((pattern) => ids.some((id) => matchesRule(pattern, id)))) &&
    (severity === undefined || severity.includes(subject.severity)) &&
    (kind === undefined || kind.includes(subject.kind)) &&
    matchesSources(matchers, subject.traits)
  );
}

/** Returns whether the rule is the pattern's rule (`942100`) or in its family (`942*`). */
export function matchesRule(pattern: string, ruleId: string | null): boolean {
  if (ruleId === null) return false;
  return pattern.endsWith("*") ? ruleId.startsWith(pattern.slice(0, -1)) : ruleId === pattern;
}

/** The sources that an alert is about: those that fire, and those that most of its events share. Hostile text. */
export type SourceTraits = Readonly<Partial<Record<SourceTrait, readonly string[]>>>;

/**
 * The patterns of each member. At least one of a member's patterns must match. An address may be a network
 * (198.51.100.0/24), a URL's path and a user agent may end in `*`, and the number of an ASN is enough.
 */
type SourceMatchers = Readonly<Partial<Record<SourceTrait, readonly string[] | undefined>>>;

/** The trait by which the key of a series is matched. */
export const TRAIT_OF: Readonly<Record<SourceKind, SourceTrait>> = {
  rules_per_ip: "ip",
  ips_per_ja4: "ja4",
  ips_per_url: "url",
  ips_per_ua: "ua",
  ips_per_asn: "asn",
};

/** A value describes an alert if at least this share of the events has it. */
const MOST = 0.5;

/** Returns the values that most of the events share. */
export function sharedValues(rows: readonly { readonly value: string; readonly share: number }[]): string[] {
  return rows.filter(({ share }) => share >= MOST).map(({ value }) => value);
}

export function matchesSources(matchers: SourceMatchers, traits: SourceTraits = {}): boolean {
  return SOURCE_TRAITS.every((trait) => {
    const patterns = matchers[trait];
    return patterns === undefined || traits[trait]?.some(toTraitTest(trait, patterns)) === true;
  });
}

type Test = (value: string) => boolean;

/** The tests of lists that are in use. An alert is compared with the same silences and routes for each of its attackers. */
const made = new WeakMap<readonly string[], Partial<Record<SourceTrait, Test>>>();

/**
 * Returns a function that tests whether a value of the trait matches one of the patterns. The patterns are read once, and
 * a value is read once however many patterns there are. Nothing throws: an attacker chooses the values.
 */
export function toTraitTest(trait: SourceTrait, patterns: readonly string[]): Test {
  const tests = made.get(patterns) ?? {};
  made.set(patterns, tests);
  return (tests[trait] ??= TESTS[trait](patterns));
}

/** Returns whether a text is an address or a network. */
export function isAddressPattern(text: string): boolean {
  return readRange(text) !== null;
}

const toSameTest = (patterns: readonly string[], normalize: (text: string) => string): Test => {
  const known = new Set(patterns.map(normalize));
  return (value) => known.has(normalize(value));
};
const lower = (patterns: readonly string[]) => toSameTest(patterns, (text) => text.toLowerCase());

const TESTS: Readonly<Record<SourceTrait, (patterns: readonly string[]) => Test>> = {
  ip: toAddressTest,
  asn: (patterns) => toSameTest(patterns, (text) => readNetworkNumber(text) ?? text.toLowerCase()),
  country: lower,
  ja4: lower,
  ua: toPrefixTest,
  url: toPrefixTest,
};

/** A pattern may end in `*`. */
function toPrefixTest(patterns: readonly string[]): Test {
  const whole = new Set(patterns.filter((pattern) => !pattern.endsWith("*")));
  const begun = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  // A beginning that starts with a shorter one is dropped. So at most one can match: the last that sorts at or before the value.
  const beginnings: string[] = [];
  for (const one of begun.sort(compare))
    if (beginnings.length === 0 || !one.startsWith(beginnings.at(-1) as string)) beginnings.push(one);
  return (value) => {
    if (whole.has(value)) return true;
    const last = beginnings[countUpTo(beginnings, value) - 1];
    return last !== undefined && value.startsWith(last);
  };
}

interface Range {
  readonly first: string;
  readonly last: string;
}

/** A value is an address, the network of 64 bits that the source series count as one, or a masked address. */
function toAddressTest(patterns: readonly string[]): Test {
  const whole = new Set(patterns);
  const ranges: Range[] = [];
  const found = patterns.flatMap((pattern) => readRange(pattern) ?? []);
  for (const one of found.sort((a, b) => compare(a.first, b.first))) {
    const before = ranges.at(-1);
    if (before === undefined || one.first > before.last) ranges.push(one);
    else if (one.last > before.last) ranges.splice(-1, 1, { ...before, last: one.last });
  }
  const firsts = ranges.map(({ first }) => first);
  return (value) => {
    if (whole.has(value)) return true;
    const range = readRange(value);
    if (range === null) return false;
    const near = ranges[countUpTo(firsts, range.last) - 1];
    return near !== undefined && near.last >= range.first;
  };
}

/**
 * Returns the first and the last address of an address or a network, as texts in the order of the addresses: the family
 * and a character for each byte. Null for any other text.
 */
function readRange(text: string): Range | null {
  const slash = text.indexOf("/");
  const base = slash === -1 ? text : text.slice(0, slash);
  // A sender's address may have a port or others behind it; a network has neither.
  const address = slash === -1 ? readSentAddress(base) : readAddress(base);
  if (address === null || base !== base.trim()) return null;
  const { family, bytes } = address;
  const all = addressBits(family);
  let bits = all;
  if (slash !== -1) {
    const length = text.slice(slash + 1);
    if (!/^\d{1,3}$/.test(length)) return null;
    // An IPv4-mapped network (::ffff:203.0.113.0/120) has the prefix of an IPv6 network.
    bits = Number(length) - (family === 4 && base.includes(":") ? 96 : 0);
    if (bits < 0 || bits > all) return null;
  }
  const edge = (fill: number) =>
    String.fromCharCode(
      family,
      ...bytes.map((byte, index) => {
        const free = 0xff >> Math.max(0, Math.min(8, bits - 8 * index));
        return (byte & ~free) | (fill & free);
      }),
    );
  const first = edge(0);
  return { first, last: bits === all ? first : edge(0xff) };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Returns how many of the sorted texts do not come after the value. */
function countUpTo(sorted: readonly string[], value: string): number {
  let [from, to] = [0, sorted.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((sorted[middle] as string) <= value) from = middle + 1;
    else to = middle;
  }
  return from;
}
