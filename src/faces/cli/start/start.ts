import { Command, InvalidArgumentError } from "commander";
import { createApp, type RunningApp } from "#app/app.ts";
import { accountsOf, type Config } from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import { secretsOf } from "#delivery/receivers/channels/registry.ts";
import { toError, UsageError } from "#lib/errors.ts";
import { createLog } from "#lib/log.ts";
import { followParent, OWN_COMMAND } from "#lib/process.ts";
import { createProgressLine } from "#lib/progress-bar.ts";
import type { Secret } from "#lib/secret.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createSignInLink } from "#people/keys/issue-key.ts";
import { writeJson } from "../edge/edge-io.ts";
import { addHelp } from "../terminal/help.ts";
import { describeStartFailure } from "./describe-failure.ts";
import {
  describeBackfill,
  describeRunning,
  describeSignIn,
  readAttack,
  type SignInPlace,
  watchBackfill,
} from "./describe-running.ts";

/** The longest time of a stop. After it the process exits: child processes end with their pipes, and the tables stay consistent. */
const STOP_DEADLINE_MS = 8_000;

const HELP = `
Without settings it starts everything: Postgres, an emulator of the platform with 72 hours of history, and an attack one
minute later. With EDGE_API_URL, EDGE_API_KEY and EDGE_SHIELD_ZONES it uses the real platform.

Examples:
  npm start
  npm start -- --archive-after 1h
  EDGE_API_URL=https://api.example.com EDGE_API_KEY_FILE=key.txt EDGE_SHIELD_ZONES=101,102 npm start
  DATABASE_URL=postgres://... REDIS_URL=redis://... LONGWATCH_ROLES=ingest,derive npm start

To list every setting with its value: npm run -s longwatch -- config list`;

/** `longwatch start`: the service, until a signal ends it. */
export function startCommand(readConfig: () => Config): Command {
  const command = new Command("start")
    .option(
      "--json",
      "print one JSON document about the started service on stdout; all other output goes to stderr",
    )
    .option(
      "--archive-after <duration>",
      "with the emulated platform: move a day into the archive this long after its end, 15m to 72h (default: 73 hours)",
      readArchiveAfter,
    )
    .exitOverride((error) => process.exit(error.exitCode === 0 ? 0 : 2))
    .action((flags: StartFlags) => run(withFlags(readConfig(), flags), flags.json === true));
  return addHelp(command, HELP);
}

interface StartFlags {
  readonly json?: true;
  /** In ms. */
  readonly archiveAfter?: number;
}

function readArchiveAfter(text: string): number {
  const [, number, unit] = /^(\d{1,4})(m|h)$/.exec(text) ?? [];
  const ms = Number(number) * (unit === "h" ? HOUR_MS : MINUTE_MS);
  if (number === undefined || ms < 15 * MINUTE_MS || ms > 72 * HOUR_MS)
    throw new InvalidArgumentError("must be 15m to 72h, such as 1h.");
  return ms;
}

/** @throws {UsageError} if days of the real platform would be archived while they can still change. */
function withFlags(
  config: Config,
  { archiveAfter: archiveAfterMs = null }: { archiveAfter?: number | null },
): Config {
  if (archiveAfterMs !== null && accountsOf(config).length > 0)
    throw new UsageError([
      "--archive-after is only for the emulated platform: the real platform shows a day's events for 72 hours; leave it out, or unset EDGE_API_URL",
    ]);
  return { ...config, archive: { ...config.archive, archiveAfterMs } };
}

async function run(config: Config, isJson: boolean): Promise<void> {
  const isTTY = process.stderr.isTTY;
  const secrets = listSecrets(config);
  const { stderr } = process;
  // The output for people. With --json, stdout holds only the document.
  const stdout = isJson ? stderr : process.stdout;
  // Log, alerts and progress share the terminal: other output is printed above the progress line.
  const line = createProgressLine(stdout);
  const log = createLog({
    level: config.logLevel,
    pretty: isTTY && !isJson && (stderr.hasColors() ? "coloured" : true),
    columns: () => stderr.columns,
    stream: { write: (text) => line.above(() => stderr.write(text)) },
    secrets,
  });
  const rereadAlerting = () => {
    const alerting = config.rereadAlerting();
    secrets.push(...secretsOf([...alerting.channels, ...alerting.destinations]));
    return alerting;
  };
  const print = (text: string) => line.above(() => void stdout.write(`${text}\n`));
  const app = createApp({
    config: { ...config, rereadAlerting },
    log,
    terminal: {
      write: (text, done) => line.above(() => stdout.write(text, done)),
      isTTY: stdout.isTTY,
      get columns() {
        return stdout.columns;
      },
      hasColors: () => stdout.isTTY && stdout.hasColors(),
      command: OWN_COMMAND,
    },
    onStep: (step) => print(`${step} ...`),
  });
  // The first line, because a service without the address of its platform otherwise resembles one that works.
  if (accountsOf(config).length === 0)
    print("EDGE_API_URL is not set. This service starts an emulated platform, and every event is invented.");
  const stopping = new AbortController();

  const stop = async (reason: string) => {
    if (stopping.signal.aborted) return;
    stopping.abort();
    line.clear();
    print(`\nStopping: ${reason}. Repeat it to stop at once.`);
    const force = setTimeout(() => {
      log.error({ afterMs: STOP_DEADLINE_MS }, "not everything stopped in time: ended by force");
      print("Stopped by force.");
      process.exit(1);
    }, STOP_DEADLINE_MS);
    await app.stop();
    clearTimeout(force);
    print("Stopped.");
    process.exit(0);
  };
  const onSignal = (reason: string) => {
    if (stopping.signal.aborted) {
      print("Stopped at once.");
      process.exit(1);
    }
    void stop(reason);
  };
  process.on("SIGINT", () => onSignal("Ctrl-C"));
  process.on("SIGTERM", () => onSignal("SIGTERM"));
  // A reload that is asked for during the start follows the start.
  let reloadNow: (() => void) | null = null;
  let isReloadDue = false;
  const reload = () => {
    isReloadDue = true;
    reloadNow?.();
  };
  // With nothing to read again, SIGHUP keeps its default meaning: the terminal is gone.
  if (config.file !== null) process.on("SIGHUP", reload);
  followParent((reason) => void stop(reason), reload);

  try {
    const running = await app.start();
    reloadNow = running.reload;
    if (isReloadDue) reloadNow();
    // Printed before the history is copied, because this is the only time that the key is shown.
    if (isJson) await writeJson(process.stdout, toJson(running, config));
    else if (running.adminKey !== null) print(describeAdminKey(running.adminKey));
    const signIn = await prepareSignIn(running, config, stdout.isTTY).catch(() => null);
    if (signIn !== null) print(describeSignIn(signIn));
    const logProblem = (problem: string, event: string) => log.error({ problem }, event);
    const stored = await watchBackfill(running, line, logProblem, stopping.signal);
    if (stored !== null) print(`${describeBackfill(stored)}\n${await describe(running, config)}`);
  } catch (thrown) {
    if (stopping.signal.aborted) return;
    // A wrong setting or an unreachable database is printed once and not also logged.
    const database = describeStartFailure(thrown, config);
    if (database !== null) throw new Error(database, { cause: thrown });
    if (!(thrown instanceof UsageError)) log.error({ err: toError(thrown) }, "start failed");
    throw thrown;
  }
}

async function describe(running: RunningApp, config: Config): Promise<string> {
  const { databaseUrl, dataDir } = config;
  const attack = await readAttack(running).catch(() => null);
  return describeRunning({ ...running, attack }, { dataDir: databaseUrl === null ? dataDir : null });
}

/**
 * Null where this process serves no HTTP. A link is made only for a terminal: other output is collected, and whoever reads
 * it within ten minutes would be an admin.
 */
async function prepareSignIn(
  { database, httpUrl }: RunningApp,
  { http }: Config,
  isTerminal: boolean,
): Promise<SignInPlace | null> {
  const url = http.publicUrl ?? httpUrl;
  if (httpUrl === null || url === null) return null;
  if (!isTerminal) return { url, link: null };
  const made = await createSignInLink(database, { url, key: null, actor: "longwatch start" });
  return { url, link: made.kind === "made" ? made.link.reveal() : null };
}

function toJson({ httpUrl, zoneIds, platform, adminKey }: RunningApp, { databaseUrl, dataDir }: Config) {
  return {
    pid: process.pid,
    version: readVersion(),
    httpUrl,
    zoneIds,
    platform: { url: platform.url, isEmulated: platform.isEmulated },
    dataDir: databaseUrl === null ? dataDir : null,
    // The key is shown only this once.
    adminKey: adminKey?.reveal() ?? null,
  };
}

function listSecrets(config: Config) {
  const { edge, databaseUrl, redisUrl, channels, heartbeatUrl } = config;
  return [
    edge.key,
    databaseUrl,
    redisUrl,
    channels.webhook?.url,
    channels.webhook?.secret,
    channels.slack?.url,
    heartbeatUrl,
    config.http.adminKey,
    config.pseudonymKey,
    ...config.alerting.accounts.map(({ key }) => key),
    ...secretsOf([...config.alerting.channels, ...config.alerting.destinations]),
  ].filter((secret) => secret !== null && secret !== undefined);
}

function describeAdminKey(key: Secret): string {
  return [
    "",
    "This is an admin key for the API of this service. It is shown only this once:",
    "",
    `  export KEY=${key.reveal()}`,
    "",
    "Send it in the header AccessKey. The command `keys create` makes other keys.",
    "",
  ].join("\n");
}
