import { readFileSync, writeFileSync } from "node:fs";
import type { Command } from "commander";
import { testRoutes } from "#alerts/test-routes.ts";
import type { Runtime } from "#app/runtime-file.ts";
import { type Config, describeConfig, type Setting } from "#config/config.ts";
import { toJsonSchema } from "#config/file/config-file-schema.ts";
import { decidesByEmail } from "#config/file/sign-in-entry.ts";
import { listEnding, OPSGENIE_ENDS } from "#delivery/receivers/channels/registry.ts";
import { nextRuns, readPauses } from "#lib/cron.ts";
import { UsageError } from "#lib/errors.ts";
import { formatDuration, formatIso, formatNumber, many, showTime } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { MAX_IN_ALL, MAX_IN_ZONE } from "#model/known-source.ts";
import { createProcessIo, writeJson, writeOut } from "../edge/edge-io.ts";
import { subjectCommand } from "../operations/operation-command.ts";
import { commandGroup, type StoreIo, storeAction, storeCommand } from "../store/store-command.ts";
import { drawTable } from "../terminal/print.ts";
import { configTable, describeFile, withConfigTable } from "./config-table.ts";

/** Number of next runs that the check shows of an expression. */
const NEXT_RUNS = 3;

const CHECK_HELP = `
Reads the environment, the files it names and the configuration file, if LONGWATCH_CONFIG names one here. The command says which
file it read, and which one the running service uses. Of each cron expression under schedule it shows the next runs. It
connects to nothing. Exit code 0, or 2 if there is a mistake.

Examples:
  npm run -s longwatch -- config check
  LONGWATCH_CONFIG=longwatch.yaml npm run -s longwatch -- config check`;

const LIST_HELP = `
A * marks a name that is set here. Every other name has its default or no value. Secrets are not shown. If a service runs
on this machine with the same data folder, the list shows its address and every setting that differs in that service.
docs/configuration.md describes every setting.

Examples:
  npm run -s longwatch -- config list
  npm run -s longwatch -- config list --json`;

const TABLE_HELP = `
Examples:
  npm run -s longwatch -- config table
  npm run -s longwatch -- config table --write docs/configuration.md`;

const SCHEMA_HELP = `
Examples:
  npm run -s longwatch -- config schema > longwatch.schema.json`;

export interface ConfigReaders {
  /** Throws the same UsageError as a start. */
  readonly check: () => Config;
  readonly list: () => readonly Setting[];
  readonly config: () => Config;
  /** The service that runs with this data folder, or null. */
  readonly running: () => RunningService | null;
}

type RunningService = Pick<Runtime, "pid" | "httpUrl" | "settings" | "configFile">;

/** `longwatch config`: lists and checks the settings. */
export function configCommand(readers: ConfigReaders, io: StoreIo = createProcessIo()): Command {
  return commandGroup("config", "", io, [
    checkCommand(readers, io),
    listCommand(readers, io),
    tableCommand(io),
    schemaCommand(io),
    subjectCommand(
      "config routes",
      "Test the routes of the configuration file.",
      [testRoutes],
      readers.config,
      io,
    ),
  ]);
}

function checkCommand({ check, running }: ConfigReaders, io: StoreIo): Command {
  return storeCommand(
    "check",
    CHECK_HELP,
    io,
    "List every mistake of the configuration; exit code 2 if there is one.",
  )
    .option("--json", "print JSON; mistakes still go to stderr")
    .action(
      storeAction<{ json?: true }>(io, async ({ json }, read) => {
        read.finish();
        const config = check();
        const serviceFile = running()?.configFile ?? null;
        const ticks = listSchedule(config.alerting.schedule);
        if (json === true)
          await writeJson(io.stdout, {
            isRight: true,
            configFile: config.file,
            serviceFile,
            schedule: ticks,
            decidesByEmail: config.alerting.signIn !== null && decidesByEmail(config.alerting.signIn),
            ending: listEnding(config.alerting.channels),
          });
        else
          await writeOut(
            io.stdout,
            `The configuration is valid.\n${describeFile(config)}\n${describeEnding(config)}${describeEmail(config)}${describeKnown(config)}${describeSchedule(ticks)}`,
          );
      }),
    );
}

function describeEnding({ alerting: { channels } }: Config): string {
  const ending = listEnding(channels);
  if (ending.length === 0) return "";
  return `Opsgenie ends on ${OPSGENIE_ENDS}. Move to jira-service-management (docs/channels.md): ${ending.join(", ")}.\n`;
}

function describeEmail({ alerting: { signIn } }: Config): string {
  if (signIn === null || !decidesByEmail(signIn)) return "";
  return `E-mail addresses decide about roles (sign_in.claim ${escapeText(signIn.claim)}). The claim email counts only with email_verified true; of other claims make sure that nobody can choose an address, a domain or a user name at the issuer. Groups are safer.\n`;
}

function describeKnown({ alerting: { detection } }: Config): string {
  const count = detection.knownSources.length;
  if (count === 0) return "";
  return `detection.known_sources has ${many(count, "pattern")}. The sources of known add count with them: at most ${MAX_IN_ZONE} in one zone and ${formatNumber(MAX_IN_ALL)} in all. doctor compares both.\n`;
}

/** Returns what the expressions of the file mean. */
function listSchedule(schedule: Config["alerting"]["schedule"]) {
  return Object.entries(schedule).map(([job, expression]) => {
    const pauses = readPauses(expression);
    const [shortest, longest] = [formatDuration(pauses.shortestMs), formatDuration(pauses.longestMs)];
    const every = shortest === longest ? `every ${longest}` : `every ${shortest} to ${longest}`;
    return { job, expression, every, next: nextRuns(expression, NEXT_RUNS).map(formatIso) };
  });
}

function describeSchedule(ticks: ReturnType<typeof listSchedule>): string {
  if (ticks.length === 0) return "";
  const rows = ticks.map(({ job, expression, every, next }) => [
    job,
    expression,
    every,
    next.map((at) => showTime(at)).join(", "),
  ]);
  return `\n${drawTable(["JOB", "EXPRESSION", "RUNS", "NEXT RUNS (UTC)"], rows, (_style, text) => text)}`;
}

function listCommand({ list, running }: ConfigReaders, io: StoreIo): Command {
  return storeCommand("list", LIST_HELP, io, "List every setting with its value.")
    .option("--json", "print JSON")
    .action(
      storeAction<{ json?: true }>(io, async (flags, read) => {
        read.finish();
        const settings = list();
        const service = running();
        const different = listDifferent(settings, service);
        const { pid, httpUrl } = service ?? {};
        const runs = service === null ? null : { pid, httpUrl, different };
        if (flags.json === true) return writeJson(io.stdout, { settings, running: runs });
        const widest = Math.max(...settings.map(({ name }) => name.length));
        const lines = settings.map(({ name, value, isSet }) =>
          `${isSet ? "*" : " "} ${name.padEnd(widest)}  ${value === null ? "-" : escapeText(value)}`.trimEnd(),
        );
        await writeOut(io.stdout, `${[...lines, ...describeService(service, different)].join("\n")}\n`);
      }),
    );
}

type Different = Pick<Setting, "name" | "value">;

/** Returns the settings that differ in the running service. For a secret, only whether one is set is compared. */
function listDifferent(settings: readonly Setting[], service: RunningService | null): Different[] {
  const { settings: there } = service ?? {};
  if (there === undefined) return [];
  return settings.flatMap(({ name, value }) => {
    const other = there[name] ?? null;
    return other === value ? [] : [{ name, value: other }];
  });
}

function describeService(service: RunningService | null, different: readonly Different[]): string[] {
  if (service === null) return [];
  const { pid, httpUrl } = service;
  const where = httpUrl === null ? "serves no HTTP" : `listens at ${httpUrl}`;
  const runs = `The running service (process ${pid}) ${where}.`;
  if (different.length === 0) return ["", runs];
  const widest = Math.max(...different.map(({ name }) => name.length));
  const lines = different.map(
    ({ name, value }) => `  ${name.padEnd(widest)}  ${value === null ? "-" : escapeText(value)}`,
  );
  return ["", `${runs} It has these other settings:`, ...lines];
}

function tableCommand(io: StoreIo): Command {
  return storeCommand("table", TABLE_HELP, io, "Print every variable as a line of Markdown.")
    .option("--write <file>", "write the lines between the markers of this file")
    .option("--json", "print every variable as JSON")
    .action(
      storeAction<{ write?: string; json?: true }>(io, async ({ write, json }, read) => {
        if (json === true && write !== undefined) read.wrong("write", write, "left out with --json");
        read.finish();
        if (json === true) await writeJson(io.stdout, { items: describeConfig(), next: null });
        else if (write === undefined) await writeOut(io.stdout, configTable());
        else writeFileSync(write, withConfigTable(readText(write)));
      }),
    );
}

function schemaCommand(io: StoreIo): Command {
  return storeCommand("schema", SCHEMA_HELP, io, "Print the configuration file's JSON Schema.")
    .option("--json", "no effect: the output is always JSON")
    .action(
      storeAction(io, async (_flags, read) => {
        read.finish();
        await writeOut(io.stdout, `${JSON.stringify(toJsonSchema(), null, 2)}\n`);
      }),
    );
}

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    throw new UsageError([`--write "${file}" must be a file that can be read`]);
  }
}
