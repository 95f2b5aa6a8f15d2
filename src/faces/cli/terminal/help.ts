/** The shape of `--help`. */
import type { Command } from "commander";
import { asCalled } from "#lib/process.ts";

const DEFAULT_COLUMNS = 80;
/** Wider text is hard to read. */
const MAX_COLUMNS = 100;

/** Adds text below the options of a command's help, filled to the terminal's width when the help is printed. */
export function addHelp(command: Command, text: string): Command {
  return command.addHelpText("after", () =>
    reflow(asCalled(text), Math.min(MAX_COLUMNS, process.stdout.columns || DEFAULT_COLUMNS)),
  );
}

/** Adds the examples of a command that only groups others: the help of each. */
export function addGroupHelp(group: Command, path = group.name()): Command {
  const lines = group.commands.map((command) => `  npm run -s longwatch -- ${path} ${command.name()} --help`);
  return addHelp(group, `\nExamples:\n${lines.join("\n")}`);
}

/** Makes a command list its subcommands with their arguments as they are typed. */
export function listAsTyped(command: Command): Command {
  return command.configureHelp({
    ...command.configureHelp(),
    subcommandTerm: (listed) =>
      [
        listed.name(),
        listed
          .usage()
          .replace(/\[(options|command)\]/g, "")
          .trim(),
      ]
        .filter((part) => part !== "")
        .join(" "),
  });
}

/** Returns a command's full name as it is typed: `alerts show`. */
export function fullName(command: Command): string {
  const { parent } = command;
  return parent === null || parent.parent === null ? command.name() : `${fullName(parent)} ${command.name()}`;
}

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
