import { Command } from "commander";
import { readRuntimeFile } from "#app/runtime-file.ts";
import {
  listSettings,
  parseConfig,
  parseConfigElsewhere,
  parseServiceConfig,
  requireEdge,
} from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import { messageOf, toError, UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { describePostgresFailure } from "#store/embedded/postgres-error.ts";
import { loadSubject, SUBJECT_SUMMARIES, SUMMARIES } from "./commands.ts";
import { adoptServiceFile, parseConfigOfService, useRunningEmulator } from "./config/config-of-service.ts";
import { adoptRemote, listWords, putRemoteFirst } from "./operations/remote-commands.ts";
import { addHelp, listAsTyped } from "./terminal/help.ts";

const readConfig = () => useRunningEmulator(parseConfigOfService(process.env));

const readServiceConfig = () => parseServiceConfig(process.env);

/** The settings of this environment with the configuration file of the running service. Every mistake in it counts. */
function examine() {
  const { env, found } = adoptServiceFile(process.env);
  const parse = found?.from === "service" ? parseConfigElsewhere : parseConfig;
  return { config: useRunningEmulator(parse(env)), configFile: found?.file ?? null, env };
}

const HELP = `
Every command has --help with examples. Unless a command's help says otherwise, exit code 1 means a failure and 2 a mistake
in the command line or the settings. Settings are environment variables. The settings of a service that runs on this
machine are found automatically.

Examples:
  npm start
  npm run -s longwatch -- status
  npm run -s longwatch -- alerts show 17
  npm run -s longwatch -- silences add --help`;

/** Returns the loader of a command that is made from operations. */
const fromOperations = (name: Parameters<typeof loadSubject>[0]) => async () =>
  (await loadSubject(name))(readConfig);

type Loaders = Readonly<Record<string, () => Promise<Command>>>;

/** Every command by name, under the headings of the help. Each is loaded when it is needed, because all of them load the whole service. */
const GROUPS: Readonly<Record<string, Loaders>> = {
  "The service:": {
    start: async () => (await import("./start/start.ts")).startCommand(readServiceConfig),
    status: async () => (await import("./status/status.ts")).statusCommand(readConfig),
    doctor: async () => (await import("./doctor/doctor.ts")).doctorCommand(examine),
    config: async () =>
      (await import("./config/config.ts")).configCommand({
        check: readServiceConfig,
        config: readConfig,
        list: () => listSettings(process.env),
        running: () => readRuntimeFile(parseConfig(process.env).dataDir),
      }),
    jobs: fromOperations("jobs"),
    backup: async () => (await import("./backup.ts")).backupCommand(readConfig),
    restore: async () => (await import("./restore.ts")).restoreCommand(readConfig),
    migrate: async () => (await import("./backup.ts")).migrateCommand(readConfig),
    completion: async () => (await import("./completion/completion.ts")).completionCommand(),
  },
  "On call:": {
    top: async () => (await import("./top/top.ts")).topCommand(readConfig),
    tail: async () => (await import("./tail/tail.ts")).tailCommand(readConfig),
    search: async () => (await import("./search/search.ts")).searchCommand(readConfig),
    export: async () => (await import("./export/export.ts")).exportCommand(readConfig),
    alerts: fromOperations("alerts"),
    explain: fromOperations("explain"),
    silences: fromOperations("silences"),
    exclusion: fromOperations("exclusion"),
    review: fromOperations("review"),
    known: fromOperations("known"),
    blocklist: fromOperations("blocklist"),
    digest: fromOperations("digest"),
    zones: fromOperations("zones"),
    rules: fromOperations("rules"),
    spikes: fromOperations("spikes"),
    trends: fromOperations("trends"),
    channels: async () =>
      (await import("./channels/channels.ts")).channelsCommand(readConfig, () =>
        parseServiceConfig(adoptServiceFile(process.env).env),
      ),
    deliveries: fromOperations("deliveries"),
    mcp: async () => (await import("./mcp.ts")).mcpCommand(readConfig),
    backtest: async () => (await import("./backtest/backtest.ts")).backtestCommand(readConfig),
  },
  "Is anything missing?": {
    coverage: fromOperations("coverage"),
    gaps: fromOperations("gaps"),
    quarantine: fromOperations("quarantine"),
    forward: fromOperations("forward"),
    verify: async () => (await import("./verify/verify.ts")).verifyCommand(readConfig),
    backfill: async () => (await import("./backfill/backfill.ts")).backfillCommand(readConfig),
    archive: async () => (await import("./archive/archive.ts")).archiveCommand(readConfig),
  },
  "Access and personal data:": {
    keys: fromOperations("keys"),
    "sign-in": async () => (await import("./sign-in.ts")).signInCommand(readConfig),
    privacy: async () => (await import("./privacy/privacy.ts")).privacyCommand(readConfig),
    erase: async () => (await import("./erase/erase.ts")).eraseCommand(readConfig),
    audit: fromOperations("audit"),
  },
  "The platform:": {
    edge: async () => (await import("./edge/edge.ts")).edgeCommand(() => requireEdge(readConfig())),
    emulator: async () => (await import("./emulator/emulator.ts")).emulatorCommand(),
  },
};

const summaries: Readonly<Record<string, string>> = { ...SUMMARIES, ...SUBJECT_SUMMARIES };

/** The operands of the commands that have some, as the help of the program shows them. */
const OPERANDS: Readonly<Record<string, string>> = { restore: "<file>", completion: "[shell]" };

/** The completion command needs the whole program, because it prints the options of every command. */
const READS_ALL = "completion";

/** Returns a command that can only be listed. */
function listedCommand(name: string): Command {
  return new Command(name).description(summaries[name] ?? "").usage(OPERANDS[name] ?? "");
}

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
  const isKnown = name !== undefined && Object.values(GROUPS).some((loaders) => Object.hasOwn(loaders, name));
  for (const [heading, loaders] of Object.entries(GROUPS)) {
    program.commandsGroup(heading);
    for (const [known, load] of Object.entries(loaders))
      if (name === undefined || known === name) program.addCommand(await load());
      else if (!isKnown) program.addCommand(listedCommand(known));
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
