import { Command } from "commander";
import { alertsCommand } from "./cli/alerts.ts";
import { auditCommand } from "./cli/audit.ts";
import { backfillCommand } from "./cli/backfill.ts";
import { backtestCommand } from "./cli/backtest.ts";
import { channelsCommand } from "./cli/channels.ts";
import { configCommand } from "./cli/config.ts";
import { coverageCommand } from "./cli/coverage.ts";
import { deliveriesCommand } from "./cli/deliveries.ts";
import { edgeCommand } from "./cli/edge.ts";
import { emulatorCommand } from "./cli/emulator.ts";
import { eraseCommand } from "./cli/erase.ts";
import { gapsCommand } from "./cli/gaps.ts";
import { keysCommand } from "./cli/keys.ts";
import { privacyCommand } from "./cli/privacy.ts";
import { silencesCommand } from "./cli/silences.ts";
import { startCommand } from "./cli/start.ts";
import { statusCommand } from "./cli/status.ts";
import { useRunningEmulator } from "./cli/use-running-emulator.ts";
import { verifyCommand } from "./cli/verify.ts";
import { parseConfig, parseServiceConfig, requireEdge } from "./config.ts";
import { escapeText } from "./edge/escape-text.ts";
import { toError, UsageError } from "./errors.ts";
import { messageOf } from "./message-of.ts";

const readConfig = () => useRunningEmulator(parseConfig(process.env));

const program = new Command("longwatch")
  .description("Keeps an edge platform's WAF event logs beyond 72 hours and watches them.")
  .showSuggestionAfterError()
  .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
  .addCommand(startCommand(() => parseServiceConfig(process.env)))
  .addCommand(statusCommand(readConfig))
  .addCommand(coverageCommand(readConfig))
  .addCommand(gapsCommand(readConfig))
  .addCommand(backfillCommand(readConfig))
  .addCommand(verifyCommand(readConfig))
  .addCommand(backtestCommand(readConfig))
  .addCommand(alertsCommand(readConfig))
  .addCommand(silencesCommand(readConfig))
  .addCommand(channelsCommand(() => parseServiceConfig(process.env)))
  .addCommand(deliveriesCommand(readConfig))
  .addCommand(keysCommand(readConfig))
  .addCommand(eraseCommand(readConfig))
  .addCommand(privacyCommand(readConfig))
  .addCommand(auditCommand(readConfig))
  .addCommand(configCommand(() => parseServiceConfig(process.env)))
  .addCommand(edgeCommand(() => requireEdge(readConfig())))
  .addCommand(emulatorCommand());

try {
  await program.parseAsync();
} catch (thrown) {
  process.stderr.write(`${messageOf(toError(thrown)).split("\n").map(escapeText).join("\n")}\n`);
  process.exitCode = thrown instanceof UsageError ? 2 : 1;
}
