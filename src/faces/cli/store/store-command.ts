/** Commands that work on the store, and how their errors are shown. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { Command } from "commander";
import { createStorage } from "#app/open-archive-store.ts";
import type { SearchDeps } from "#archive/search/searching.ts";
import type { Config } from "#config/config.ts";
import { findReplacement } from "#db/archive/archive-files.ts";
import { createArchiveReader, createSearchDuckdb } from "#db/archive/archive-reader.ts";
import { ArchiveDamagedError } from "#db/archive/bring-file.ts";
import type { Database } from "#db/client.ts";
import { type EdgeIo, OutputClosedError } from "#faces/cli/edge/edge-io.ts";
import { createFlagReader, type FlagReader } from "#faces/cli/edge/flag-reader.ts";
import { describePlatformFailure } from "#faces/cli/start/describe-failure.ts";
import { addGroupHelp, addHelp, fullName, listAsTyped } from "#faces/cli/terminal/help.ts";
import { messageOf, ServiceError, toError, UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import { closestName, escapeText } from "#lib/text.ts";
import { type Mistake, Refusal } from "#operations/refusal.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { describePostgresFailure, EmbeddedPostgresError } from "#store/embedded/postgres-error.ts";
import { untilStopped, withStore } from "./open-store.ts";

/** Streams, clock and exit of a command. Tests pass their own. */
export interface StoreIo extends EdgeIo {
  readonly stdin: EdgeIo["stdin"] & { readonly isTTY?: boolean };
  readonly stdout: EdgeIo["stdout"] & {
    readonly hasColors?: () => boolean;
    readonly columns?: number;
    readonly rows?: number;
  };
  readonly stderr: EdgeIo["stderr"] & { readonly isTTY?: boolean; readonly columns?: number };
  /** Ends a command that runs until Ctrl-C, as Ctrl-C does. */
  readonly interrupted?: AbortSignal;
}

/** Creates a command on the database that reports unknown options and arguments together with its other mistakes. */
export function storeCommand(name: string, help: string, io: StoreIo, description = ""): Command {
  const command = new Command(name)
    .description(description)
    .allowUnknownOption()
    .allowExcessArguments()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
    .exitOverride((error) => io.exit(error.exitCode === 0 ? 0 : 2));
  const parse = command.parseOptions.bind(command);
  command.parseOptions = (args) => parse(args.map((arg) => useOwnName(command, arg)));
  return addHelp(command, help);
}

/** Names of the beginning and the end of a span. A command has one of each, and takes the other as well. */
const SPAN_NAMES: Readonly<Record<string, string>> = {
  "--since": "--from",
  "--from": "--since",
  "--until": "--to",
  "--to": "--until",
};

function useOwnName({ options }: Command, arg: string): string {
  const [name = "", ...value] = arg.split("=");
  const other = SPAN_NAMES[name];
  const has = (one: string | undefined) => options.some(({ long }) => long === one);
  return other === undefined || has(name) || !has(other) ? arg : [other, ...value].join("=");
}

/** Creates a command that only groups others: `alerts list`, `alerts show`. `path` is how the group is typed. */
export function commandGroup(
  path: string,
  description: string,
  io: StoreIo,
  commands: readonly Command[],
): Command {
  const group = new Command(path.split(" ").at(-1))
    .description(description)
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
    .exitOverride((error) => io.exit(error.exitCode === 0 ? 0 : 2));
  for (const command of commands) group.addCommand(command);
  return addGroupHelp(listAsTyped(group), path);
}

/**
 * Returns the action of a command on the database. `run` reads the flags, calls `read.finish()` and then does the work.
 * Errors are printed here: exit code 2 for a mistake in the command line or the settings, 1 for a later failure.
 */
export function storeAction<Flags extends object>(
  io: StoreIo,
  run: (flags: Flags, read: FlagReader, operands: readonly string[]) => Promise<void>,
) {
  // Commander passes one value for each declared argument, then the options, then the command.
  return async (...given: readonly (string | undefined | Flags | Command)[]): Promise<void> => {
    const command = given.at(-1) as Command;
    const { registeredArguments: declared, args } = command;
    // An unknown option is among the arguments.
    const isOperand = declared.some(({ variadic }) => variadic)
      ? (arg: string) => !arg.startsWith("-")
      : (_: string, index: number) => index < declared.length;
    const operands = args.filter(isOperand);
    const read = createFlagReader(io.clock());
    read.mistakes.push(
      ...describeUnknown(
        command,
        args.filter((arg, index) => !isOperand(arg, index)),
      ),
    );
    // The failing write reports a closed pipe. Without this listener, the error event would end the process.
    io.stdout.on("error", () => {});
    try {
      await run(optionsOf(command) as Flags, read, operands);
    } catch (thrown) {
      report(io, fullName(command), thrown instanceof Refusal ? toCommandError(thrown) : thrown);
    }
  };
}

/**
 * Returns the options of a command. A command above it takes those first that both have: coverage and coverage withdraw. The
 * program does not: its options are about where commands run.
 */
function optionsOf(command: Command): object {
  const { parent } = command;
  const isBelow = parent !== null && parent.parent !== null;
  return { ...command.opts(), ...(isBelow ? optionsOf(parent) : {}) };
}

function report(io: StoreIo, name: string, thrown: unknown): void {
  if (thrown instanceof OutputClosedError) return;
  if (thrown instanceof UsageError) {
    const lines = thrown.mistakes.map((mistake) => `  - ${escapeText(mistake)}\n`).join("");
    io.stderr.write(
      `longwatch ${name}: ${many(thrown.mistakes.length, "mistake")}, nothing was read or stored\n${lines}`,
    );
    io.setExitCode(2);
    return;
  }
  io.stderr.write(`longwatch ${name}: ${describe(thrown)}\n`);
  io.setExitCode(1);
}

function describe(thrown: unknown): string {
  if (thrown instanceof EdgeError) return describePlatformFailure(thrown);
  const database = describePostgresFailure(thrown);
  if (database !== null) return database;
  const error = toError(thrown);
  const message = messageOf(error);
  if (error instanceof EmbeddedPostgresError) return message.split("\n").map(escapeText).join("\n");
  const cause = error.cause instanceof Error ? messageOf(error.cause) : "";
  return escapeText(cause === "" || cause === message ? message : `${message}: ${cause}`);
}

/** A refused input is a mistake of the command line; what is not there, or not allowed, is a failure. */
export function toCommandError(
  { statusCode, mistakes, message }: Refusal,
  word: (mistake: Mistake) => string = ({ field, value, rule }) =>
    [field, value, rule].filter(Boolean).join(" "),
): Error {
  if (mistakes.length > 0) return new UsageError(mistakes.map(word));
  if (statusCode === 404) return new NotFoundError(message);
  return [400, 409, 422].includes(statusCode) ? new UsageError([message]) : new Error(message);
}

/** Thrown if the alert, silence or key does not exist. */
export class NotFoundError extends ServiceError {
  override readonly name = "NotFoundError";
  readonly code = "NOT_FOUND";
  readonly disposition = "give-up";
}

/**
 * Returns a mistake for each argument and option in `unread`, which the command does not know. A misspelt option comes
 * with the option that is probably meant. The value of an unknown option is not reported as another mistake.
 */
export function describeUnknown(command: Command, unread: readonly string[]): string[] {
  const known = [...command.options.flatMap(({ long }) => long ?? []), "--help"];
  return unread.flatMap((text, index) => {
    const before = unread[index - 1];
    if (!isOption(text) && before !== undefined && isOption(before) && !before.includes("=")) return [];
    const meant = isOption(text) ? closestName(text.replace(/=.*$/s, ""), known) : null;
    const hint = meant === null ? "" : `: did you mean ${meant}?`;
    return [`"${escapeText(text)}" is not an argument or option of this command${hint}`];
  });
}

function isOption(text: string): boolean {
  return /^--?\D/.test(text);
}

/**
 * Runs `fn` with the events in Postgres, the files of archive days, and a signal for Ctrl-C. A damaged file is only
 * reported: the machine that runs the command may not have the archive's folder, and the service checks its own files.
 */
export function withSearch<T>(
  io: Pick<StoreIo, "interrupted">,
  config: Config,
  fn: (deps: SearchDeps, database: Database, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  return withStore(config, (database) =>
    withFiles(database, config, io, (deps, signal) => fn(deps, database, signal)),
  );
}

/** Does the same on a database that is open. */
export async function withFiles<T>(
  database: Database,
  config: Config,
  io: Pick<StoreIo, "interrupted">,
  fn: (deps: SearchDeps, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { folder } = config.archive;
  return untilStopped(io, async (signal) => {
    const scratch = await mkdtemp(path.join(tmpdir(), "longwatch-search-"));
    const duckdb = createSearchDuckdb(folder, scratch);
    try {
      const files = createArchiveReader({
        duckdb,
        storage: createStorage(config.archive, database.db),
        scratch,
        findReplacement: (file) => findReplacement(database.db, file),
      });
      return await fn({ queries: database, files }, signal);
    } catch (thrown) {
      throw thrown instanceof ArchiveDamagedError ? explain(thrown, config.archive) : thrown;
    } finally {
      await duckdb.close();
      await rm(scratch, { recursive: true, force: true });
    }
  });
}

function explain(error: ArchiveDamagedError, { folder, bucket }: Config["archive"]): Error {
  const hint =
    error.damage === "is missing" && bucket === null
      ? `The folder of the archive is ${folder}. Set LONGWATCH_ARCHIVE_DIR to the folder of the service, or run the command where the service runs`
      : "archive verify lists every damaged file";
  return new Error(`${error.message}. ${hint}`, { cause: error });
}
