import { Command } from "commander";
import { readVersion } from "#config/read-version.ts";
import { messageOf, toError, UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { describePostgresFailure } from "#store/embedded/postgres-error.ts";
import { GROUPS } from "./commands.ts";
import { adoptRemote, listWords, putRemoteFirst } from "./operations/remote-commands.ts";
import { addHelp, listAsTyped } from "./terminal/help.ts";

const HELP = `
Every command has --help with examples. Unless a command's help says otherwise, exit code 1 means a failure and 2 a mistake
in the command line or the settings. Settings are environment variables. The settings of a service that runs on this
machine are found automatically. A command that takes --from and --to takes --since and --until as well, and the other way
round.

Examples:
  npm start
  npm run -s longwatch -- status
  npm run -s longwatch -- alerts show 17
  npm run -s longwatch -- silences add --help`;

/** The operands of the commands that have some, as the help of the program shows them. */
const OPERANDS: Readonly<Record<string, string>> = {
  find: "<text>",
  restore: "<file>",
  import: "<file...>",
  completion: "[shell]",
};

/** The completion command needs the whole program, because it prints the options of every command. */
const READS_ALL = "completion";

/**
 * Returns the program with the command of this name alone; if there is no such command, with all commands as the help lists
 * them, none of them loaded; and without a name, with all commands.
 */
export async function loadProgram(name?: string): Promise<Command> {
  const program = new Command("longwatch")
    .description("Keeps an edge platform's WAF event logs beyond 72 hours, detects spikes and raises alerts.")
    .version(readVersion(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .option("--url <address>", "ask the service at this address instead of the database (LONGWATCH_URL)")
    .option("--plain-http", "allow http to another machine (LONGWATCH_PLAIN_HTTP)")
    .option("--key-file <file>", "the file with the key for that service (LONGWATCH_KEY_FILE)")
    // A command may have an option of its own with one of these names, such as the paths of a silence.
    .enablePositionalOptions()
    .hook("preAction", (self, action) => adoptRemote(self.opts(), action))
    .showSuggestionAfterError()
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2));
  const isKnown =
    name !== undefined && Object.values(GROUPS).some((commands) => Object.hasOwn(commands, name));
  for (const [heading, commands] of Object.entries(GROUPS)) {
    program.commandsGroup(heading);
    for (const [known, { summary, load }] of Object.entries(commands))
      if (name === undefined || known === name) program.addCommand(await load(known));
      else if (!isKnown)
        program
          .command(known)
          .description(summary)
          .usage(OPERANDS[known] ?? "");
    if (heading === "The service:")
      program.helpCommand("help [command]", "Print this help, or the help of a command.");
  }
  addHelp(listAsTyped(program), HELP);
  return program;
}

/** Returns the name of the command that is run or explained. The options of the program may precede it. */
function findCommand(args: readonly string[]): string {
  const [first = "help", second = first] = listWords(args);
  return first === "help" ? second : first;
}

/** Parses the arguments and runs a command. Errors become a text on stderr and an exit code. */
export async function runProgram(): Promise<void> {
  try {
    const args = process.argv.slice(2);
    const name = findCommand(args);
    const program = await loadProgram(name === READS_ALL ? undefined : name);
    await program.parseAsync(putRemoteFirst(args, program), { from: "user" });
  } catch (thrown) {
    const isMistyped = thrown instanceof UsageError;
    process.stderr.write(
      isMistyped
        ? `longwatch: ${many(thrown.mistakes.length, "mistake")}, nothing was started\n${thrown.mistakes.map((mistake) => `  - ${escapeText(mistake)}\n`).join("")}`
        : `longwatch: ${describePostgresFailure(thrown) ?? messageOf(toError(thrown)).split("\n").map(escapeText).join("\n")}\n`,
    );
    process.exitCode = isMistyped ? 2 : 1;
  }
}
