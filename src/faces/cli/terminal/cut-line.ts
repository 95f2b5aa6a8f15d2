import { cutToWidth, measureWidth } from "#stages/delivery/message/text-width.ts";

// oxlint-disable-next-line no-control-regex -- the styles that Paint writes begin with this character
const STYLE = /(\u001b\[[\d;]*m)/;

/** Returns a line of plain or painted text cut to `columns`, with its styles reset. */
export function cutLine(line: string, columns: number): string {
  let left = columns;
  return line
    .split(STYLE)
    .map((part) => {
      if (STYLE.test(part)) return part;
      const shown = left <= 0 ? "" : cutToWidth(part, left);
      left -= measureWidth(part);
      return shown;
    })
    .join("");
}
