import { readAddress, readMasked } from "#model/ip-address.ts";
import { type FoundAddress, findIpv4 } from "./find-ipv4.ts";
import { findIpv6 } from "./find-ipv6.ts";
import { dropForward, findSpelled } from "./find-spelled.ts";
import { findWholeNumbers } from "./find-whole-number.ts";
import { foldSpelling } from "./fold-spelling.ts";
import { isPseudonym } from "./pseudonym.ts";

const PSEUDONYM = /anon-[a-z2-7]{13}-[a-z2-7]{13}/g;

/** Returns the replacement of an address, or null to leave it. */
export type Replace = (ip: string) => string | null;

/**
 * Replaces the addresses, masked addresses and pseudonyms of a text. Every part that masks, erases or refuses
 * addresses in texts uses this function, so that all of them find the same. An address is also found where its spelling
 * keeps programs from reading it (`203[.]0[.]113[.]7`, `%2E`, full-width digits, one number), backwards
 * (`7.113.0.203.in-addr.arpa`), and in names of hosts (`ec2-203-0-113-7`). If text can be read as several
 * overlapping addresses, the whole stretch gets the replacement of the first that has one.
 */
export function replaceAddresses(text: string, replace: Replace): string {
  if (!MAY_HOLD_ADDRESS.test(text) && !NOT_ASCII.test(text)) return text;
  if (isWhole(text)) return replace(text) ?? text;
  let result = "";
  let copied = 0;
  for (const { start, end, instead } of joinOverlapping(findReplaced(text, replace))) {
    result += text.slice(copied, start) + instead;
    copied = end;
  }
  return result + text.slice(copied);
}

const MAY_HOLD_ADDRESS =
  /[:.]|%(?:25){0,3}(?:2d|2e|3a)|anon-|dot|&#|&period|&colon|\\[ux]|\d{8}|0x[0-9a-f]{7}|\d\s{0,3}[-_]\s{0,3}\d{1,3}\s{0,3}[-_]\s{0,3}\d|[0-9a-f]{4}-[0-9a-f]{4}-/i;
const NOT_ASCII = /\P{ASCII}/u;

/** Returns whether the whole text is one address, as most texts with addresses are. `::203.0.113.7` holds two. */
function isWhole(text: string): boolean {
  if (text.includes(":") && text.includes(".")) return false;
  return readAddress(text) !== null || readMasked(text) !== null || isPseudonym(text);
}

interface Replaced {
  readonly start: number;
  readonly end: number;
  readonly instead: string;
}

/** Returns the replaced addresses by their position, of those at one position the longest first. */
function findReplaced(text: string, replace: Replace): Replaced[] {
  const known = new Map<string, string | null>();
  const replaceOnce = (address: string) => {
    const before = known.get(address);
    if (before !== undefined) return before;
    const instead = replace(address);
    known.set(address, instead);
    return instead;
  };
  return findWritten(text)
    .flatMap(({ start, end, address }) => {
      const instead = replaceOnce(address);
      return instead === null ? [] : [{ start, end, instead }];
    })
    .sort((one, other) => one.start - other.start || other.end - one.end);
}

/** Returns the addresses of a text as it is written, and as it reads without the spellings that hide them. */
function findWritten(text: string): FoundAddress[] {
  const folded = foldSpelling(text);
  if (folded === null) return findPlain(text);
  const { at } = folded;
  const hidden = findPlain(folded.text).map(({ start, end, address }) => ({
    start: at[start] ?? 0,
    end: at[end] ?? text.length,
    address,
  }));
  return [...findPlain(text), ...hidden];
}

function findPlain(text: string): FoundAddress[] {
  const dotted = findIpv4(text);
  const plain = [...findPseudonyms(text), ...dotted, ...findIpv6(text, dotted), ...findWholeNumbers(text)];
  return [...dropForward(text, plain), ...findSpelled(text)];
}

function findPseudonyms(text: string): FoundAddress[] {
  return [...text.matchAll(PSEUDONYM)].map(({ 0: address, index: start }) => ({
    start,
    end: start + address.length,
    address,
  }));
}

function joinOverlapping(replaced: readonly Replaced[]): Replaced[] {
  const joined: Replaced[] = [];
  for (const one of replaced) {
    const before = joined.at(-1);
    if (before === undefined || one.start >= before.end) joined.push(one);
    else joined[joined.length - 1] = { ...before, end: Math.max(before.end, one.end) };
  }
  return joined;
}

/** Members with the sources of events, in evidence and in messages. */
const ADDRESSES = ["ip", "ips"];
/** Sibling members with other values of the same events. */
const TRAITS = ["path", "paths", "ua", "userAgents", "ja4", "ja4s", "url", "parameter", "matched"];

/**
 * Replaces addresses in every string of a JSON value. Returns the value itself if there was none. With `dropTraits`
 * the paths, user agents and fingerprints that were counted together with a replaced address are removed: they may be
 * just as personal, and the value does not say to which address they belong. So are the texts of a request of the address.
 */
export function replaceInJson(
  value: unknown,
  replace: Replace,
  { dropTraits }: { dropTraits: boolean },
): unknown {
  // A member that is nothing but a number is an identifier, such as a rule's.
  if (typeof value === "string") return /^\d+$/.test(value) ? value : replaceAddresses(value, replace);
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
    ? after.map(([name, item]) => [name, TRAITS.includes(name) ? dropTrait(item) : item] as const)
    : after;
  const isSame = kept.every(([, item], index) => item === before[index]?.[1]);
  return isSame ? value : Object.fromEntries(kept);
}

function dropTrait(item: unknown): unknown {
  return Array.isArray(item) ? [] : typeof item === "string" ? "" : item;
}

function keepIfSame(before: readonly unknown[], after: readonly unknown[]): readonly unknown[] {
  return after.every((item, index) => item === before[index]) ? before : after;
}
