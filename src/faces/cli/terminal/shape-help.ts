import type { Command } from "commander";
import { asCalled } from "#lib/process.ts";
import { reflow } from "./reflow.ts";

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
