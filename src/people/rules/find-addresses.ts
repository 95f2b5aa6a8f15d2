/** Finds addresses in free text, also as a whole number or spelled in words. */

import ipaddr from "ipaddr.js";
import { readAddress } from "#model/ip-address.ts";

/** An address in a text, from `start` up to `end`, in a form that `readAddress` and `readMasked` read. */
export interface FoundAddress {
  readonly start: number;
  readonly end: number;
  readonly address: string;
}

/** The parts of a dotted address from any digit of its first part on, and up to three digits before. */
const DOTTED = /(?=(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d+|\*))(?<=(\d{0,3}))/g;

/**
 * Finds every dotted IPv4 address of a text, full or masked (`203.0.113.*`), whatever surrounds it. A digit next to
 * an address belongs to its first or last part while that part stays at most 255. Of a longer part only the digits
 * that can belong to an address count. Leading zeros are read as decimal.
 */
export function findIpv4(text: string): FoundAddress[] {
  return [...text.matchAll(DOTTED)].flatMap(
    ({ 1: first = "", 2: second = "", 3: third = "", 4: last = "", 5: before = "", index: start }) => {
      if (![first, second, third].every(isOctet) || (before !== "" && isOctet(before + first))) return [];
      return headsOf(last).map((tail) => {
        const octets = [first, second, third, tail];
        const address = octets.map((octet) => (octet === "*" ? octet : Number(octet))).join(".");
        return { start, end: start + octets.join(".").length, address };
      });
    },
  );
}

function isOctet(text: string): boolean {
  return text.length > 0 && text.length <= 3 && Number(text) <= 255;
}

function headsOf(text: string): string[] {
  if (text === "*") return [text];
  return isOctet(text) ? [text] : [3, 2, 1].map((length) => text.slice(0, length)).filter(isOctet);
}

/**
 * An IPv4 address as one number, as browsers and tools accept it. Nine digits or more, hexadecimal digits, or any number
 * that is the host of a URL: dates and numbers of tickets have eight digits.
 */
const NUMBER = /(?<![\w.%-])(?:0x[0-9a-f]{7,8}|\d{9,10}|(?<=\/\/|@)\d{8})(?![\w%-]|\.\d)/gi;

/** The names of reverse lookups, which have the parts of an address backwards. RFC 2317 puts a range after the last part. */
const REVERSE_IPV4 = /(?<!\d)\d{1,3}\.(?:\d{1,3}(?:[-/_]|%2f)\d{1,3}\.)?(?:\d{1,3}\.){3}in-addr\.arpa/gi;
const REVERSE_IPV6 = /(?<![\da-f])(?:[\da-f]\.){32}ip6\.arpa/gi;
/** Parts that names of hosts have: `ec2-203-0-113-7`, `203_0_113_7`. */
const JOINED = /(?<!\d)(?:\d+(?:-\d+){3,}|\d+(?:_\d+){3,})/g;
const SPACED =
  /(?<![\d.])\d{1,3}(?:\s{0,3}\.\s{0,3}\d{1,3}){3}(?!\d|\.\d)|(?<!\d|-\s{0,3})\d{1,3}(?:\s{1,3}-\s{1,3}\d{1,3}){3}(?!\d|\s{0,3}-)/g;
/** Parts as programs read them: `0xcb.0.0161.7`. The last part may stand for several. */
const MIXED =
  /(?<![\w.])(?:0x[\da-f]{1,8}|\d{1,10})(?:\s{0,3}\.\s{0,3}(?:0x[\da-f]{1,8}|\d{1,10})){1,3}(?![\w]|\.\d)/gi;
/**
 * All eight groups, or what Windows takes for a name. A word next to the groups may look like a group, so that every
 * eight of them count.
 */
const DASHED_IPV6 = /(?=((?:[\da-f]{4}-){7}[\da-f]{4}))|(?<![\da-f-])[\da-f-]{3,39}(?=\.ipv6-literal\.net)/gi;

/** Finds the addresses of a text that are spelled backwards, with other separators, or with parts in other number systems. */
export function findSpelled(text: string): FoundAddress[] {
  const find = (pattern: RegExp, read: (written: string) => string | null) =>
    [...text.matchAll(pattern)].flatMap(({ 0: whole, 1: written = whole, index: start }) => {
      const address = read(written);
      return address === null ? [] : [{ start, end: start + written.length, address }];
    });
  return [
    ...find(REVERSE_IPV4, (written) => toIpv4(readReverse(written))),
    ...find(REVERSE_IPV6, (written) => toIpv6(written.split(".").slice(0, 32).reverse().join(""))),
    ...[...text.matchAll(JOINED)].flatMap((match) => readJoined(text, match[0], match.index)),
    ...find(SPACED, readSpaced),
    ...find(MIXED, readMixed),
    ...find(NUMBER, (written) =>
      Number(written) < 0x1_00_00_00 ? null : readNumbers(written.replace(/^0+(?=\d)/, "")),
    ),
    ...find(DASHED_IPV6, (written) => {
      const address = written.replaceAll("-", ":");
      return readAddress(address) === null ? null : address;
    }),
  ];
}

/** Removes the readings inside the name of a reverse lookup, which would be those of other people. */
export function dropForward(text: string, found: readonly FoundAddress[]): readonly FoundAddress[] {
  if (!/\.arpa/i.test(text)) return found;
  // Hostile text may have thousands of both, so the names are marked instead of compared with each reading.
  const isName = new Uint8Array(text.length);
  for (const { 0: name, index } of [REVERSE_IPV4, REVERSE_IPV6].flatMap((one) => [...text.matchAll(one)]))
    isName.fill(1, index, index + name.length);
  return found.filter(({ start, end }) => isName[start] !== 1 || isName[end - 1] !== 1);
}

function readReverse(name: string): number[] {
  const parts = name.split(".").filter((part) => /^\d+$/.test(part));
  return parts.reverse().map(Number);
}

function toIpv4(parts: readonly number[]): string | null {
  return parts.length === 4 && parts.every((part) => part <= 255) ? parts.join(".") : null;
}

function toIpv6(digits: string): string {
  return (digits.match(/.{4}/g) ?? []).join(":");
}

/** Of more than four parts, one at either end may belong to a word: `ec2-203-0-113-7`. Others are dates and phone numbers. */
function readJoined(text: string, run: string, start: number): FoundAddress[] {
  const parts = run.split(/[-_]/);
  const isWord = (character: string | undefined) => /[a-z]/i.test(character ?? "");
  const [first = "", last = ""] = [parts[0], parts.at(-1)];
  const from = parts.length > 4 && isWord(text[start - 1]) ? 1 : 0;
  const to = parts.length - from > 4 && isWord(text[start + run.length]) ? parts.length - 1 : parts.length;
  const kept = parts.slice(from, to);
  const address = kept.every((part) => part.length <= 3) ? toIpv4(kept.map(Number)) : null;
  if (address === null) return [];
  const begin = start + (from === 0 ? 0 : first.length + 1);
  const end = start + run.length - (to === parts.length ? 0 : last.length + 1);
  return [{ start: begin, end, address }];
}

/** The numbers of a list (`1. 2. 3. 4`) have one digit each. */
function readSpaced(written: string): string | null {
  const parts = written.split(/[.-]/).map((part) => part.trim());
  return /\s/.test(written) && parts.some(({ length }) => length > 1) ? toIpv4(parts.map(Number)) : null;
}

function readMixed(written: string): string | null {
  const parts = written.split(".").map((part) => part.trim());
  if (!parts.some((part) => /^0x|^0[0-7]{3,}$/i.test(part))) return null;
  // A part with an 8 or 9 is not octal.
  return readNumbers(
    parts.map((part) => (/[89]/.test(part) ? part.replace(/^0+(?!x)/i, "") : part)).join("."),
  );
}

/** Reads an address as programs do: of one to four numbers, which may be hexadecimal or octal. */
function readNumbers(written: string): string | null {
  return ipaddr.IPv4.isValid(written) ? ipaddr.IPv4.parse(written).toString() : null;
}

/**
 * Matches runs of groups and colons. A URL may contain a colon as `%3A`; `%3a00:1::` may also be a percent sign
 * before an address.
 */
const RUN = /[0-9A-Fa-f:]+/g;
const ENCODED_RUN = /(?:[0-9A-Fa-f:]|%3[Aa])+/g;
const TOKEN = /[0-9A-Fa-f]+|:|%3[Aa]/g;
const GROUPS = 8;
const GROUP_CHARS = 4;

interface Token {
  readonly start: number;
  readonly end: number;
  /** A group's digits, or `:` for a colon in either spelling. */
  readonly text: string;
}

/** IPv4 addresses of the same text by their first character, because an IPv6 address may end with one. */
type DottedTails = ReadonlyMap<number, readonly FoundAddress[]>;

/**
 * Finds every IPv6 address of a text, whatever surrounds it. If a run of groups and colons reads as one address, the
 * run is that address. Otherwise, or if its first or last group may be a word (`code:2001:db8::1`), every address
 * that begins and ends at one of its groups counts.
 */
export function findIpv6(text: string, dotted: readonly FoundAddress[]): FoundAddress[] {
  const tails = Map.groupBy(dotted, ({ start }) => start);
  const patterns = text.includes("%3") ? [RUN, ENCODED_RUN] : [RUN];
  return patterns
    .flatMap((pattern) => [...text.matchAll(pattern)])
    .flatMap(({ 0: run, index }) => readRun(text, toTokens(run, index), tails))
    .map((one) => withStar(text, one));
}

function readRun(text: string, tokens: readonly Token[], tails: DottedTails): FoundAddress[] {
  if (tokens.filter(isColon).length < 2) return [];
  const whole = findWhole(tokens, tails);
  return whole === null || mayHoldWords(text, whole) ? findAll(tokens, tails) : [whole];
}

function toTokens(run: string, index: number): Token[] {
  return [...run.matchAll(TOKEN)].map(({ 0: token, index: at }) => {
    const start = index + at;
    return { start, end: start + token.length, text: token.startsWith("%") ? ":" : token };
  });
}

const isColon = (token: Token | undefined): boolean => token?.text === ":";

/** Returns the run as one address, without a single colon at either end, or null. */
function findWhole(tokens: readonly Token[], tails: DottedTails): FoundAddress | null {
  const from = isColon(tokens[0]) && !isColon(tokens[1]) ? 1 : 0;
  const to = isColon(tokens.at(-1)) && !isColon(tokens.at(-2)) ? tokens.length - 1 : tokens.length;
  const first = tokens[from];
  const last = tokens[to - 1];
  if (first === undefined || last === undefined) return null;
  const end = Math.max(last.end, ...(tails.get(last.start) ?? []).map((tail) => tail.end));
  const readings = readFrom(tokens.slice(0, to), from, tails);
  return readings.find((reading) => reading.start === first.start && reading.end === end) ?? null;
}

function findAll(tokens: readonly Token[], tails: DottedTails): FoundAddress[] {
  return tokens.flatMap((_, at) => readFrom(tokens, at, tails));
}

/**
 * Returns whether the run may begin or end with a word. A letter next to the run makes its group part of a word. A
 * first group that no address in use has may be a word.
 */
function mayHoldWords(text: string, { start, end, address }: FoundAddress): boolean {
  const isWordAround = /[g-z]/i.test(text.slice(Math.max(0, start - 1), start) + text.slice(end, end + 1));
  const [head = ""] = address.split(":");
  const first = Number.parseInt(head, 16);
  // 2000::/3, fc00::/7, fe80::/10, ff00::/8, ::/16 and 64:ff9b::/32 are in use.
  const isUsed = head === "" || (first & 0xe000) === 0x2000 || first >= 0xfe80 || (first & 0xfe00) === 0xfc00;
  return isWordAround || !(isUsed || first === 0 || first === 0x64);
}

/** Returns the addresses that begin with this token. Of a group with too many digits, its last digits begin some and its first end others. */
function readFrom(tokens: readonly Token[], from: number, tails: DottedTails): FoundAddress[] {
  const first = tokens[from];
  if (first === undefined) return [];
  const excess = Math.max(0, first.text.length - GROUP_CHARS);
  const cuts = excess === 0 ? [0] : [0, 1, 2, 3].map((more) => excess + more);
  if (isColon(first) && !isColon(tokens[from + 1])) return [];
  return cuts.flatMap((cut) => {
    const found: FoundAddress[] = [];
    const start = first.start + cut;
    let [address, groups, gaps] = ["", 0, 0];
    for (let at = from; at < tokens.length; at++) {
      const { text: whole, end } = tokens[at] ?? first;
      const text = at === from ? whole.slice(cut) : whole;
      const begin = at === from ? start : end - text.length;
      const isGap = text === ":" && address.endsWith(":");
      if (isGap) gaps++;
      if (text !== ":") groups++;
      if (gaps > 1 || groups > GROUPS - gaps) break;
      if (text !== ":" && groups + gaps + 1 <= GROUPS && (gaps === 1 || groups + 1 === GROUPS))
        for (const tail of at === from ? [] : (tails.get(begin) ?? []))
          if (!tail.address.endsWith("*"))
            found.push({ start, end: tail.end, address: address + toGroups(tail.address) });
      if (isGap) found.push({ start, end, address: `${address}:` });
      else if (text !== ":" && (gaps === 1 || groups === GROUPS))
        for (const length of text.length > GROUP_CHARS ? [4, 3, 2, 1] : [text.length])
          found.push({ start, end: begin + length, address: address + text.slice(0, length) });
      if (text.length > GROUP_CHARS) break;
      address += text;
    }
    return found;
  });
}

/**
 * Converts a dotted end to groups. The library reads `::203.0.113.7` as IPv4; with groups at its end it is the IPv6
 * address.
 */
function toGroups(dotted: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split(".").map(Number);
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

/** Extends a masked address (`2001:db8:1::*`) by its star, so that the star is replaced too. */
function withStar(text: string, found: FoundAddress): FoundAddress {
  return found.address.endsWith("::") && text[found.end] === "*" ? { ...found, end: found.end + 1 } : found;
}
