import { Command } from "commander";
import { createApp, type RunningApp } from "../app.ts";
import { secretsOf } from "../channel/channel-secrets.ts";
import type { Config } from "../config.ts";
import { toError, UsageError } from "../errors.ts";
import { followParent } from "../follow-parent.ts";
import { createLog } from "../log.ts";
import type { Secret } from "../secret.ts";
import { describeBackfill, watchBackfill } from "./watch-backfill.ts";

/** A stop that takes longer is ended: everything it started ends with its pipes, and the tables know what was done. */
const STOP_DEADLINE_MS = 9_000;

const HELP = `
Without any setting it starts everything itself: Postgres, an emulator of the platform with 72 hours of history, and an
attack one minute later. With EDGE_API_URL, EDGE_API_KEY and EDGE_SHIELD_ZONES it works on the real platform.

Examples:
  npm start
  EDGE_API_URL=https://api.example.com EDGE_API_KEY_FILE=key.txt EDGE_SHIELD_ZONES=101,102 npm start
  DATABASE_URL=postgres://... REDIS_URL=redis://... LONGWATCH_ROLES=ingest,derive npm start

Every setting is in the README and in \`longwatch config\`.`;

/** `longwatch start`: the service, until a signal ends it. */
export function startCommand(readConfig: () => Config): Command {
  return new Command("start")
    .description("Run the service: copy events, detect spikes, raise alerts.")
    .addHelpText("after", HELP)
    .action(() => run(readConfig()));
}

async function run(config: Config): Promise<void> {
  const isTTY = process.stderr.isTTY;
  const secrets = listSecrets(config);
  const log = createLog({
    level: config.logLevel,
    pretty: isTTY,
    stream: process.stderr,
    secrets,
  });
  const rereadAlerting = () => {
    const alerting = config.rereadAlerting();
    secrets.push(...secretsOf(alerting.channels));
    return alerting;
  };
  const print = (text: string) => void process.stdout.write(`${text}\n`);
  const app = createApp({
    config: { ...config, rereadAlerting },
    log,
    terminal: process.stdout,
    onStep: (step) => print(`${step} ...`),
  });
  const stopping = new AbortController();

  const stop = async (reason: string) => {
    if (stopping.signal.aborted) return;
    stopping.abort();
    print(`\nStopping: ${reason}. Once more to stop at once.`);
    const force = setTimeout(() => {
      log.error({ afterMs: STOP_DEADLINE_MS }, "not everything stopped in time: ended by force");
      process.exit(1);
    }, STOP_DEADLINE_MS);
    await app.stop();
    clearTimeout(force);
    process.exit(0);
  };
  const onSignal = (reason: string) => {
    if (stopping.signal.aborted) process.exit(1);
    void stop(reason);
  };
  process.on("SIGINT", () => onSignal("Ctrl-C"));
  process.on("SIGTERM", () => onSignal("SIGTERM"));
  followParent((reason) => void stop(reason));

  try {
    const starting = app.start();
    // Without a file the signal stays what it was: the terminal is gone.
    if (config.hasFile)
      process.on(
        "SIGHUP",
        () =>
          void starting.then(
            ({ reload }) => reload(),
            () => undefined,
          ),
      );
    const running = await starting;
    // At once: the only copy would be gone with a copy of the past that is interrupted.
    if (running.adminKey !== null) print(describeAdminKey(running.adminKey));
    const stored = await watchBackfill(running, process.stdout, stopping.signal);
    if (stored !== null) print(`${describeBackfill(stored)}\n${describeRunning(running, config)}`);
  } catch (thrown) {
    if (stopping.signal.aborted) return;
    // What somebody typed wrong is told to them, once.
    if (!(thrown instanceof UsageError)) log.error({ err: toError(thrown) }, "start failed");
    throw thrown;
  }
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
    ...secretsOf(config.alerting.channels),
  ].filter((secret) => secret !== null && secret !== undefined);
}

function describeAdminKey(key: Secret): string {
  return [
    "",
    "An admin key for the API of this service, shown this once:",
    "",
    `  ${key.reveal()}`,
    "",
    "Send it in the header AccessKey. `npm run -s longwatch -- keys create` makes others.",
    "",
  ].join("\n");
}

function describeRunning({ platform, httpUrl, zoneIds }: RunningApp, config: Config): string {
  const command = "npm run -s longwatch --";
  const emulated = [
    "An attack on zone 101 begins a minute after the start; its alert appears here.",
    "",
    "Look around, in another terminal:",
    `  ${command} status`,
    `  ${command} coverage                                   which hours are proven complete`,
    `  ${command} verify --zone ${zoneIds[0]} --from -6h --to now   compare with the platform again`,
    `  ${command} edge events search --zone ${zoneIds[0]} --from -1h --to now --group-by ruleId`,
    `  curl ${platform.url}/_emulator                              what the emulator holds`,
  ];
  const real = [
    `Watching zones ${zoneIds.join(", ")}.`,
    "",
    "Look around, in another terminal:",
    `  ${command} status`,
    `  ${command} coverage`,
  ];
  const http =
    httpUrl === null
      ? []
      : [
          `  curl ${httpUrl}/readyz`,
          `  curl -H "AccessKey: $KEY" ${httpUrl}/api/v1/alerts        with the key from above, or one of \`keys create\``,
          `  ${httpUrl}/docs                                      every route, with examples`,
        ];
  const ending = ["", `State is kept in ${config.dataDir}. Ctrl-C stops everything that was started.`, ""];
  return [...(platform.isEmulated ? emulated : real), ...http, ...ending].join("\n");
}
