import { ownText } from "#lib/own-text.ts";
import { LONGEST_WINDOW } from "../thresholds/windows.ts";

/** The most texts of one generation. In a flood of more, a text that comes back may get another number. */
const MAX_TEXTS = 100_000;

/**
 * Returns a function that numbers texts. A text keeps its number until it has not been seen for an hour, when nothing
 * counts it any more. Minutes never go back.
 */
export function createNumbering(): (text: string, minute: number) => number {
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
