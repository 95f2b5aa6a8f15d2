/** Replaces addresses in free text and JSON, however they are spelled. */
import { readAddress, readMasked } from "#model/ip-address.ts";
import { dropForward, type FoundAddress, findIpv4, findIpv6, findSpelled } from "./find-addresses.ts";
import { isPseudonym } from "./pseudonym.ts";

const PSEUDONYM = /anon-[a-z2-7]{13}-[a-z2-7]{13}/g;

/** Returns the replacement of an address, or null to leave it. */
type Replace = (ip: string) => string | null;

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
  const plain = [...findPseudonyms(text), ...dotted, ...findIpv6(text, dotted)];
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

/** A text in plain spelling, and where each of its characters was in the text as it was written. */
interface Folded {
  readonly text: string;
  /** One more than characters: the last is the end of the written text. */
  readonly at: readonly number[];
}

/** Characters that a URL has encoded, also twice (`%252E`): digits, hexadecimal letters, dashes, dots, colons, brackets. */
const ENCODED = /%(?:25){0,3}(2d|2e|3[0-9a]|4[1-6]|6[1-6]|5b|5d)/gi;
/** Characters that JSON, JavaScript or HTML have escaped: `\u002e`, `\u{2e}`, `\x2e`, `&#46;`, `&#x2e;`. */
const ESCAPED =
  /\\{1,4}(?:u([\da-f]{4})|u\{0{0,9}([\da-f]{1,4})\}|x([\da-f]{2}))|&#(?:x0{0,9}([\da-f]{1,4})|0{0,9}(\d{1,5}));?/gi;
const FOREIGN = /\P{ASCII}/gu;
/** `[.]`, `(dot)`, `[.` and `.]`, `\.`, ` dot `, `&period;`, and the same with a colon. */
const SEPARATOR =
  /\\{1,4}[.:]|[[({<]\s?(?:dot|[.:])\s?[\])}>]|[[({<]\.|\.[\])}>]|(?<=\d)\s?dot\s?(?=\d)|&(?:period|colon);/gi;
const PLAIN = /^[0-9a-f.:()[\]{}]$/i;

/**
 * Returns the text without the spellings that keep an address from being read: defanged, encoded as in a URL,
 * escaped, with full-width or other digits, with characters that nobody sees. Null if the text has none.
 */
function foldSpelling(written: string): Folded | null {
  const first: Folded = {
    text: written,
    at: Array.from({ length: written.length + 1 }, (_, index) => index),
  };
  const decoded = fold(first, ENCODED, ([, hex = ""]) => String.fromCharCode(Number.parseInt(hex, 16)));
  const unescaped = fold(decoded, ESCAPED, ([, json, braced, short, hex = "", decimal]) =>
    String.fromCharCode(
      decimal === undefined ? Number.parseInt(json ?? braced ?? short ?? hex, 16) : Number(decimal),
    ),
  );
  const plain = fold(unescaped, FOREIGN, ([character]) => toPlain(character));
  const folded = fold(plain, SEPARATOR, ([separator]) => (/:|colon/i.test(separator) ? ":" : "."));
  return folded.text === written ? null : folded;
}

/** Replaces the matches, each by one character or by none. */
function fold(before: Folded, pattern: RegExp, toOne: (match: RegExpExecArray) => string): Folded {
  const texts: string[] = [];
  const at: number[] = [];
  let copied = 0;
  const copy = (end: number) => {
    texts.push(before.text.slice(copied, end));
    for (let index = copied; index < end; index++) at.push(before.at[index] ?? 0);
  };
  for (const match of before.text.matchAll(pattern)) {
    const one = toOne(match);
    if (one === match[0]) continue;
    copy(match.index);
    texts.push(one);
    if (one !== "") at.push(before.at[match.index] ?? 0);
    copied = match.index + match[0].length;
  }
  if (copied === 0 && texts.length === 0) return before;
  copy(before.text.length);
  return { text: texts.join(""), at: [...at, before.at.at(-1) ?? 0] };
}

/** Returns the ASCII character that a person reads, none for a character that nobody sees, else the character itself. */
function toPlain(character: string): string {
  if (/[\p{Cf}\p{DI}]/u.test(character)) return "";
  if (character === "。" || character === "｡") return ".";
  // Word processors write them, or a minus sign, instead of a hyphen.
  if (/[\p{Pd}\u2212]/u.test(character)) return "-";
  const compatible = character.normalize("NFKC");
  if (PLAIN.test(compatible)) return compatible;
  return /\p{Nd}/u.test(character) ? String(valueOf(character)) : character;
}

/** Digits of every script stand in rows from zero to nine. */
function valueOf(digit: string): number {
  const code = digit.codePointAt(0) ?? 0;
  let value = 0;
  while (value < 9 && /\p{Nd}/u.test(String.fromCodePoint(code - value - 1))) value++;
  return value;
}
