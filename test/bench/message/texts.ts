import { readFileSync } from "node:fs";
import path from "node:path";
import type { Dice } from "./dice.ts";

/**
 * A text with the rules that a real rule set (ModSecurity 2.9, Core Rule Set 3.3.4, paranoia level 2) matched in it. The texts of
 * texts.ndjson come from public collections of attacks and from documentation of packages: data, never to be run or trusted.
 */
export interface Sample {
  readonly text: string;
  readonly hits: readonly (readonly [rule: string, matched: string])[];
}

/** A text of which the real matches are known, or one that the tests of text-tests.ts judge. */
export type Text = string | Sample;

export const textOf = (text: Text) => (typeof text === "string" ? text : text.text);

type Line = readonly [source: string, hits: Sample["hits"], text: string];

const SAMPLES = Map.groupBy(
  readFileSync(path.join(import.meta.dirname, "texts.ndjson"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line),
  ([source]) => source,
);

/** Returns the real texts of a sort, such as `comment` or `sqli`. */
export function samplesOf(source: string): readonly Sample[] {
  const lines = SAMPLES.get(source);
  if (lines === undefined) throw new RangeError(`no texts of "${source}" in texts.ndjson`);
  return lines.map(([, hits, text]) => ({ text, hits }));
}

const WORDS =
  "order parcel jacket invoice garden winter delivery colour size return gift kettle lamp photo thanks regards question answer update weather train ticket office table window bread coffee meeting summer bicycle music".split(
    " ",
  );

export const words = (dice: Dice, count: number) =>
  Array.from({ length: count }, () => dice.pick(WORDS)).join(" ");

/** Returns the text with other plain words around it, so that two people seldom write the same. The rules still match. */
export function vary(dice: Dice, text: Text): Text {
  const before = `${words(dice, dice.whole(1, 4))}. `;
  const after = ` ${words(dice, dice.whole(0, 3))}`;
  const whole = `${before}${textOf(text)}${after}`;
  return typeof text === "string" ? whole : { text: whole, hits: text.hits };
}

const FIRST = ["O'Hara", "D'Angelo", "O'Connor", "N'Diaye", "L'Estrange", "M'Bala"];
const SHELLS = ["cat config.yml | grep port", "ls -la; cat notes.txt", "curl -s http://host/install | sh"];
const CODE = [
  "SELECT name, price FROM products WHERE price > 10 AND stock > 0 ORDER BY price",
  "if (a == b && c != d) { return x['y']; }",
  "<script src='widget.js'></script> does not load, why?",
  "UPDATE users SET name = 'x' WHERE id = 4; -- is this right?",
  "<img src=photo.jpg onerror=\"this.style.display='none'\">",
  "union select is what I learn at the moment",
  "process.env.NODE_ENV === 'production' ? require('./a') : null",
];

const PASSWORD_CHARS = "abcdefghkmnpqrstXYZ23456789'\"#;-()=<>|&%!".split("");

/** Returns what people write where a site lets them: code, quotes, names. */
export const PEOPLE = {
  code: (dice: Dice): Text => vary(dice, dice.pick([...CODE, ...SHELLS])),
  quoted: (dice: Dice): Text => `"${words(dice, 2)}" -- ${dice.pick(FIRST)} & sons (${dice.below(90)})`,
  search: (dice: Dice): Text =>
    dice.pick([
      `"${words(dice, 2)}" -${words(dice, 1)}`,
      `${words(dice, 1)} -- ${words(dice, 1)}`,
      `${dice.pick(FIRST)}'s ${words(dice, 1)}`,
      `size>=${dice.below(60)} or '${words(dice, 1)}'`,
    ]),
  html: (dice: Dice): Text =>
    `<p>${words(dice, 6)} <strong>${words(dice, 2)}</strong></p><ul><li>${words(dice, 2)}</li></ul>` +
    `<a href="https://${dice.pick(WORDS)}.example/${dice.below(999)}" style="color:#333">${words(dice, 1)}</a><img src="/m/${dice.below(9_999)}.jpg">`,
  password: (dice: Dice): Text =>
    Array.from({ length: dice.whole(10, 18) }, () => dice.pick(PASSWORD_CHARS)).join(""),
  consent: (dice: Dice): Text =>
    `{"v":${dice.whole(1, 3)},"stamp":"${dice.hex(12)}==","necessary":true,"stats":${dice.chance(0.5)},"ads":false,"method":"explicit","utc":${1_700_000_000 + dice.below(90_000_000)}}`,
  fileName: (dice: Dice): Text =>
    `${words(dice, 1)}; ${dice.pick(FIRST)}'s "${words(dice, 1)}" (${dice.below(9)}).pdf`,
  link: (dice: Dice): Text => `https://${dice.pick(WORDS)}.partner.example/${words(dice, 1)}?utm_source=mail`,
  graphql: (dice: Dice): Text =>
    `query Get($id: ID!) { ${dice.pick(WORDS)}(id: $id) { lines { sku qty price { amount } } } }`,
  base64: (): Text => "data:text/html;base64,PHNjcmlwdD4=; onload=(1)",
} as const;
