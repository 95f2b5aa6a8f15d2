import type { Command } from "commander";
import { asCalled } from "../../lib/own-command.ts";
import { reflow } from "./reflow.ts";

const DEFAULT_COLUMNS = 80;
/** Prose that is wider is hard to read. */
const MAX_COLUMNS = 100;

/** Text below a command's options, filled at the terminal's width when it is asked for. */
export function addHelp(command: Command, text: string): Command {
  return command.addHelpText("after", () =>
    reflow(asCalled(text), Math.min(MAX_COLUMNS, process.stdout.columns || DEFAULT_COLUMNS)),
  );
}

/** Examples of a command that only holds others: the help of each. */
export function addGroupHelp(group: Command, path = group.name()): Command {
  const lines = group.commands.map((command) => `  npm run -s longwatch -- ${path} ${command.name()} --help`);
  return addHelp(group, `\nExamples:\n${lines.join("\n")}`);
}

/** Has a command list its subcommands with their arguments as one types them. */
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
