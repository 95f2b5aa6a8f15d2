import type { FoundAddress } from "./find-ipv4.ts";

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
