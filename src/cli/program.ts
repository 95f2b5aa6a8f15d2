import { Command } from "commander";
import { readRuntimeFile } from "../app/runtime-file.ts";
import { listSettings, parseConfig, parseServiceConfig, requireEdge } from "../config/config.ts";
import { readVersion } from "../config/read-version.ts";
import { describePostgresFailure } from "../embedded/describe-postgres-failure.ts";
import { toError, UsageError } from "../lib/errors.ts";
import { escapeText } from "../lib/escape-text.ts";
import { messageOf } from "../lib/message-of.ts";
import { many } from "../lib/progress-bar.ts";
import { alertsCommand } from "./alerts/alerts.ts";
import { archiveCommand } from "./archive/archive.ts";
import { auditCommand } from "./audit/audit.ts";
import { backfillCommand } from "./backfill/backfill.ts";
import { backtestCommand } from "./backtest/backtest.ts";
import { channelsCommand } from "./channels/channels.ts";
import { completionCommand } from "./completion/completion.ts";
import { adoptServiceFile } from "./config/adopt-service-file.ts";
import { configCommand } from "./config/config.ts";
import { coverageCommand } from "./coverage/coverage.ts";
import { deliveriesCommand } from "./deliveries.ts";
import { doctorCommand } from "./doctor/doctor.ts";
import { edgeCommand } from "./edge/edge.ts";
import { emulatorCommand } from "./emulator/emulator.ts";
import { useRunningEmulator } from "./emulator/use-running-emulator.ts";
import { eraseCommand } from "./erase/erase.ts";
import { exportCommand } from "./export/export.ts";
import { gapsCommand } from "./gaps.ts";
import { keysCommand } from "./keys/keys.ts";
import { knownCommand } from "./known/known.ts";
import { migrateCommand } from "./migrate.ts";
import { privacyCommand } from "./privacy/privacy.ts";
import { searchCommand } from "./search/search.ts";
import { signInCommand } from "./sign-in.ts";
import { silencesCommand } from "./silences/silences.ts";
import { startCommand } from "./start/start.ts";
import { statusCommand } from "./status/status.ts";
import { tailCommand } from "./tail/tail.ts";
import { addHelp, listAsTyped } from "./terminal/shape-help.ts";
import { topCommand } from "./top/top.ts";
import { verifyCommand } from "./verify/verify.ts";

const readConfig = () => useRunningEmulator(parseConfig(process.env));

const readServiceConfig = () => parseServiceConfig(process.env);

/** The settings of this environment with the configuration file of the running service. */
function examine() {
  const { env, found } = adoptServiceFile(process.env);
  return { config: useRunningEmulator(parseConfig(env)), configFile: found?.file ?? null, env };
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

/** Exported for the test that walks over every command. */
export const program = new Command("longwatch")
  .description("Keeps an edge platform's WAF event logs beyond 72 hours, detects spikes and raises alerts.")
  .version(readVersion(), "-V, --version", "print the version")
  .helpOption("-h, --help", "print this help")
  .showSuggestionAfterError()
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .commandsGroup("The service:")
  .addCommand(startCommand(readServiceConfig))
  .addCommand(statusCommand(readConfig))
  .addCommand(doctorCommand(examine))
  .addCommand(
    configCommand({
      check: readServiceConfig,
      config: readConfig,
      list: () => listSettings(process.env),
      running: () => readRuntimeFile(parseConfig(process.env).dataDir),
    }),
  )
  .addCommand(migrateCommand(readConfig))
  .addCommand(completionCommand())
  .helpCommand("help [command]", "Print this help, or the help of a command.")
  .commandsGroup("On call:")
  .addCommand(topCommand(readConfig))
  .addCommand(tailCommand(readConfig))
  .addCommand(searchCommand(readConfig))
  .addCommand(exportCommand(readConfig))
  .addCommand(alertsCommand(readConfig))
  .addCommand(silencesCommand(readConfig))
  .addCommand(knownCommand(readConfig))
  .addCommand(channelsCommand(() => parseServiceConfig(adoptServiceFile(process.env).env)))
  .addCommand(deliveriesCommand(readConfig))
  .addCommand(backtestCommand(readConfig))
  .commandsGroup("Is anything missing?")
  .addCommand(coverageCommand(readConfig))
  .addCommand(gapsCommand(readConfig))
  .addCommand(verifyCommand(readConfig))
  .addCommand(backfillCommand(readConfig))
  .addCommand(archiveCommand(readConfig))
  .commandsGroup("Access and personal data:")
  .addCommand(keysCommand(readConfig))
  .addCommand(signInCommand(readConfig))
  .addCommand(privacyCommand(readConfig))
  .addCommand(eraseCommand(readConfig))
  .addCommand(auditCommand(readConfig))
  .commandsGroup("The platform:")
  .addCommand(edgeCommand(() => requireEdge(readConfig())))
  .addCommand(emulatorCommand());
addHelp(listAsTyped(program), HELP);

/** Parses the arguments and runs a command. Errors become a text on stderr and an exit code. */
export async function runProgram(): Promise<void> {
  try {
    await program.parseAsync();
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
