import { describeConfig } from "#config/config.ts";

const BEGIN = "<!-- config -->";
const END = "<!-- /config -->";

/** Returns a Markdown table with one line per variable. */
export function configTable(): string {
  const rows = describeConfig().map(({ variables, rule, fallback, description }) => [
    variables.map(code).join(", "),
    description,
    rule,
    fallback === null ? "" : code(fallback),
  ]);
  return [["Variable", "Meaning", "Must be", "Default"], ["---", "---", "---", "---"], ...rows]
    .map((cells) => `| ${cells.join(" | ")} |\n`)
    .join("");
}

/**
 * Returns the text with a new table between its markers.
 * @throws {Error} when the text does not have both markers, in order.
 */
export function withConfigTable(text: string): string {
  const begin = text.indexOf(BEGIN);
  const end = text.indexOf(END);
  if (begin === -1 || end < begin)
    throw new Error(
      `cannot write the table: the file must have the markers ${BEGIN} and ${END}, in this order`,
    );
  return `${text.slice(0, begin + BEGIN.length)}\n\n${configTable()}\n${text.slice(end)}`;
}

function code(text: string): string {
  return `\`${text}\``;
}
