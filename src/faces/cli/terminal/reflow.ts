const NARROWEST = 40;
const INDENT = "  ";

/**
 * Fills a help text to the width of the terminal: paragraphs, and the second column of lists. The lines below `Examples:`
 * stay unchanged, so that they can be copied.
 */
export function reflow(text: string, width: number): string {
  const columns = Math.max(NARROWEST, width);
  const filled: string[] = [];
  let paragraph: string[] = [];
  let isExample = false;
  const flush = () => {
    if (paragraph.length > 0) filled.push(...fill(paragraph.join(" "), columns));
    paragraph = [];
  };
  for (const line of text.split("\n")) {
    const isPlain = line !== "" && !line.startsWith(" ");
    if (isPlain && !isExample && !line.endsWith(":")) {
      paragraph.push(line);
      continue;
    }
    if (isPlain && !isExample) paragraph.push(line);
    flush();
    if (!isPlain) filled.push(...(isExample ? [line] : fillItem(line, columns)));
    isExample = line === "Examples:" || (isExample && line !== "");
  }
  flush();
  return filled.join("\n");
}

/** Fills a list item such as `  name   description`; further lines of the description are indented to its column. */
function fillItem(line: string, columns: number): string[] {
  const [, name = "", what = ""] = /^( {2}\S.*? {2,})(.*)$/.exec(line) ?? [];
  if (what === "") return fill(line.trimStart(), columns, /^ */.exec(line)?.[0] ?? "");
  const [first = "", ...rest] = fill(what, columns - name.length);
  return [name + first, ...rest.map((part) => " ".repeat(name.length) + part)];
}

function fill(text: string, columns: number, indent = ""): string[] {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(" ")) {
    if (line.trim() !== "" && line.length + 1 + word.length > columns) {
      lines.push(line);
      line = indent + (indent === "" ? "" : INDENT) + word;
    } else line = line.trim() === "" ? line + word : `${line} ${word}`;
  }
  return [...lines, line];
}
