import type { Command } from "commander";

interface Named {
  readonly name: string;
  readonly description: string;
}

/** A command, and the words that may follow it. */
export interface CommandNode {
  /** The words after the program's name: `alerts list`. Empty for the program itself. */
  readonly path: string;
  /** Its subcommands, or the values of its argument if these are fixed. */
  readonly words: readonly Named[];
  readonly options: readonly (Named & { readonly takesValue: boolean })[];
}

/** Returns the program and all its commands as their help shows them. */
export function listNodes(command: Command, path = ""): CommandNode[] {
  const help = command.createHelp();
  const visible = help.visibleCommands(command);
  const words = visible.map((one) => ({ name: one.name(), description: one.description() }));
  const values = command.registeredArguments.flatMap(({ argChoices = [], description }) =>
    argChoices.map((name) => ({ name, description })),
  );
  const options = [...help.visibleOptions(command), ...help.visibleGlobalOptions(command)].flatMap(
    ({ long, short, description, required, optional }) => {
      const name = long ?? short;
      return name === undefined ? [] : [{ name, description, takesValue: required || optional }];
    },
  );
  const below = visible.flatMap((one) => listNodes(one, path === "" ? one.name() : `${path} ${one.name()}`));
  return [{ path, words: [...words, ...values], options }, ...below];
}
