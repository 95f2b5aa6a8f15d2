import { readAddress } from "#model/ip-address.ts";
import type { FoundAddress } from "./find-ipv4.ts";

/** The names of reverse lookups, which have the parts of an address backwards. RFC 2317 puts a range after the last part. */
const REVERSE_IPV4 = /(?<!\d)\d{1,3}\.(?:\d{1,3}(?:[-/_]|%2f)\d{1,3}\.)?(?:\d{1,3}\.){3}in-addr\.arpa/gi;
const REVERSE_IPV6 = /(?<![\da-f])(?:[\da-f]\.){32}ip6\.arpa/gi;
/** Parts that names of hosts have: `ec2-203-0-113-7`, `203_0_113_7`. */
const JOINED = /\d+(?:-\d+){3,}|\d+(?:_\d+){3,}/g;
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
  const isOctal = (part: string) => /^0[0-7]{2,}$/.test(part);
  if (!parts.some((part) => /^0x/i.test(part) || (isOctal(part) && part.length > 3))) return null;
  const numbers = parts.map((part) => (isOctal(part) ? Number.parseInt(part, 8) : Number(part)));
  const last = numbers.pop() ?? 0;
  const bytes = 4 - numbers.length;
  if (numbers.some((part) => part > 255) || last >= 256 ** bytes) return null;
  const rest = Array.from({ length: bytes }, (_, i) => Math.floor(last / 256 ** (bytes - 1 - i)) % 256);
  return toIpv4([...numbers, ...rest]);
}
