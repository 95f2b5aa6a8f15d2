import ipaddr from "ipaddr.js";
import { SOURCE_TRAITS, type SourceKind, type SourceTrait } from "./kinds.ts";

/** The sources that an alert is about: those that fire, and those that most of its events share. Hostile text. */
export type SourceTraits = Readonly<Partial<Record<SourceTrait, readonly string[]>>>;

/**
 * The patterns of each member. At least one of a member's patterns must match. An address may be a network
 * (198.51.100.0/24), a URL's path and a user agent may end in `*`, and the number of an ASN is enough.
 */
export type SourceMatchers = Readonly<Partial<Record<SourceTrait, readonly string[] | undefined>>>;

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
    if (patterns === undefined) return true;
    const values = traits[trait] ?? [];
    return patterns.some((pattern) => values.some((value) => MATCHES[trait](pattern, value)));
  });
}

/** Returns a function that tests whether a value of the trait matches one of the patterns. */
export function toTraitTest(trait: SourceTrait, patterns: readonly string[]): (value: string) => boolean {
  return (value) => patterns.some((pattern) => MATCHES[trait](pattern, value));
}

/** Returns whether a text is an address or a network. */
export function isAddressPattern(text: string): boolean {
  // The library also accepts one number, `0x7f.1` and `1.2`. People who look for the address would not find those.
  const isPlain = text.includes(":") || ipaddr.IPv4.isValidFourPartDecimal(text.split("/", 1)[0] ?? "");
  return isPlain && (ipaddr.isValid(text) || ipaddr.isValidCIDR(text));
}

type Matches = (pattern: string, value: string) => boolean;

const isSame: Matches = (pattern, value) => pattern.toLowerCase() === value.toLowerCase();

const startsLike: Matches = (pattern, value) =>
  pattern.endsWith("*") ? value.startsWith(pattern.slice(0, -1)) : pattern === value;

const MATCHES: Readonly<Record<SourceTrait, Matches>> = {
  ip: matchesAddress,
  // The platform may add the network's name: AS64500 Example Hosting.
  asn: (pattern, value) => isSame(toAsn(pattern), toAsn(value)),
  country: isSame,
  ja4: isSame,
  ua: startsLike,
  url: startsLike,
};

function toAsn(text: string): string {
  return /^(?:AS)?(\d+)\b/i.exec(text)?.[1] ?? text;
}

function matchesAddress(pattern: string, value: string): boolean {
  // The source series count an IPv6 network of 64 bits as one address.
  const address = value.endsWith("/64") ? value.slice(0, -3) : value;
  if (!ipaddr.isValid(address)) return pattern === value;
  const found = ipaddr.process(address);
  if (!ipaddr.isValidCIDR(pattern)) {
    if (!ipaddr.isValid(pattern)) return false;
    const wanted = ipaddr.process(pattern);
    if (wanted.kind() !== found.kind()) return false;
    return value.endsWith("/64") ? found.match(wanted, 64) : wanted.toString() === found.toString();
  }
  const [network, bits] = ipaddr.parseCIDR(pattern);
  return network.kind() === found.kind() && found.match(network, bits);
}
