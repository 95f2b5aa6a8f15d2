/** A text in plain spelling, and where each of its characters was in the text as it was written. */
export interface Folded {
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
export function foldSpelling(written: string): Folded | null {
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
