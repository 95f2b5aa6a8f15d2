/** Text and curves in the columns of a terminal. */

/** East Asian wide and full-width characters, and emoji. Each takes two columns. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const MARK = /[\p{Mn}\p{Me}]/u;

function columnsOf(character: string): number {
  if (character <= "~") return 1;
  if (MARK.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Returns the number of columns that the text takes in a terminal. The text has no control characters. */
export function measureWidth(text: string): number {
  let width = 0;
  for (const character of text) width += columnsOf(character);
  return width;
}

/** Returns the part of the text that fits into `columns`; an ellipsis, which counts, marks a cut. */
export function cutToWidth(text: string, columns: number): string {
  if (measureWidth(text) <= columns) return text;
  let kept = "";
  let width = 0;
  for (const character of text) {
    width += columnsOf(character);
    if (width > columns - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

export function padToWidth(text: string, columns: number): string {
  return text + " ".repeat(Math.max(columns - measureWidth(text), 0));
}

/** Breaks lines between words, and inside a word that is wider than a line. */
export function wrapText(text: string, columns: number): string[] {
  const lines: string[] = [];
  let line = "";
  let width = 0;
  const flush = () => {
    if (line !== "") lines.push(line);
    line = "";
    width = 0;
  };
  for (const word of text.split(" ")) {
    const wordWidth = measureWidth(word);
    if (width > 0 && width + 1 + wordWidth > columns) flush();
    if (wordWidth <= columns) {
      line += width > 0 ? ` ${word}` : word;
      width = measureWidth(line);
      continue;
    }
    for (const character of word) {
      if (width + columnsOf(character) > columns) flush();
      line += character;
      width += columnsOf(character);
    }
  }
  flush();
  return lines;
}

const BLOCKS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/**
 * Draws counts as block characters, at most `maxColumns`. Merged columns show their maximum, so that a spike stays
 * visible.
 */
export function drawSparkline(counts: readonly number[], maxColumns: number): string {
  if (counts.length === 0) return "";
  const span = Math.ceil(counts.length / maxColumns);
  const columns: number[] = [];
  // Groups from the newest backwards, so that the last column is complete.
  for (let end = counts.length; end > 0; end -= span) {
    columns.unshift(
      counts.slice(Math.max(end - span, 0), end).reduce((most, count) => Math.max(most, count), 0),
    );
  }
  const most = columns.reduce((highest, count) => Math.max(highest, count), 1);
  return columns
    .map((count) => BLOCKS[Math.round((count / most) * (BLOCKS.length - 1))] ?? BLOCKS[0])
    .join("");
}
