/** Commands that run for minutes: flags, progress, Ctrl-C, output and exit code. */

import { createInterface } from "node:readline";
import type { Command } from "commander";
import { createArchiveStore, createStorage } from "#app/open-archive-store.ts";
import type { Config } from "#config/config.ts";
import type { Database } from "#db/client.ts";
import type { ArchiveStore } from "#jobs/archive/archive-store.ts";
import type { Clock } from "#lib/clock.ts";
import { createProgressLine, drawBar } from "#lib/progress-bar.ts";
import type { Secret } from "#lib/secret.ts";
import type { ArchiveStorage } from "#model/archive-storage.ts";
import { createProcessIo, writeJson, writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { readServiceClock, untilStopped, withStore } from "./open-store.ts";
import { type StoreIo, storeAction, storeCommand } from "./store-command.ts";

type Camel<Text extends string> = Text extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<Camel<Tail>>}`
  : Text;

/** The values of options: a text for `--zone <id>`, true for `--check`. */
type FlagsOf<Options> = {
  readonly [Option in keyof Options as Option extends `--${infer Name} <${string}>`
    ? Camel<Name>
    : Option extends `--${infer Name}`
      ? Camel<Name>
      : never]?: Option extends `${string} <${string}>` ? string : true;
};

interface Answer {
  /** Printed with `--json`. */
  readonly facts: object;
  /** Printed without it. */
  readonly text: string;
  /** The exit code is 1 although the work was done. */
  readonly isFailed?: boolean;
}

interface Task<Options, Input> {
  readonly name: string;
  /** Left out: that of the list of commands. */
  readonly summary?: string;
  readonly help: string;
  /** The name of the only argument and its help. A name that ends in `...` may be given more than once. */
  readonly operand?: readonly [name: string, help: string];
  /** Options and their help: `{ "--zone <id>": "shield zone (required)" }`. `--json` is added. */
  readonly options: Options;
  /** The help of `--json`. */
  readonly json?: string;
  /** Reads the flags, and notes every mistake in `read`. May return undefined after a mistake. */
  readonly read: (
    flags: FlagsOf<Options>,
    read: FlagReader,
    given: {
      readonly io: StoreIo;
      readonly operand: string | undefined;
      readonly operands: readonly string[];
    },
  ) => Input | undefined;
  /** Does the work, with `onStore` or `onFiles`. The settings are read only after the command line is valid. */
  readonly run: (input: Input, io: StoreIo, readConfig: () => Config) => Promise<Answer>;
}

/** The option of a command that writes an entry into the audit trail. `readActor` reads it. */
export const BY = {
  "--by <name>": "name of the person who does it (default: the user who runs the command)",
} as const;

/** Defines a command that runs for minutes, and returns the function that creates it. */
export function defineTask<const Options extends Readonly<Record<`--${string}`, string>>, Input>({
  operand,
  options,
  json = "print JSON",
  read: readFlags,
  run,
  ...words
}: Task<Options, Input>) {
  return (readConfig: () => Config, io: StoreIo = createProcessIo()): Command => {
    const command = storeCommand(words.name, words.help, io, words.summary);
    if (operand !== undefined)
      command.usage(`[options] <${operand[0]}>`).argument(`[${operand[0]}]`, operand[1]);
    for (const [flag, help] of Object.entries<string>(options)) command.option(flag, help);
    return command.option("--json", json).action(
      storeAction<FlagsOf<Options> & { readonly json?: true }>(io, async (flags, read, operands) => {
        const input = readFlags(flags, read, { io, operand: operands[0], operands });
        read.finish();
        if (input === undefined) return;
        const { facts, text, isFailed = false } = await run(input, io, readConfig);
        if (flags.json === true) await writeJson(io.stdout, facts);
        else await writeOut(io.stdout, text);
        if (isFailed) io.setExitCode(1);
      }),
    );
  };
}

/**
 * Prints the text and asks for the word.
 * @throws {Error} for another answer, at the end of the input, and after Ctrl-C
 */
export async function confirm(
  { stdin, stderr }: Pick<StoreIo, "stdin" | "stderr">,
  text: string,
  word: string,
  signal: AbortSignal,
): Promise<void> {
  stderr.write(`${text}Type "${word}" to continue: `);
  for await (const line of createInterface({ input: stdin, signal })) {
    if (line.trim() === word) return;
    break;
  }
  throw new Error("not confirmed; nothing was changed");
}

interface Parts {
  /**
   * Draws the progress line; `share` is from 0 to 1, null if nobody knows it.
   * @throws after Ctrl-C, so that work which reports its progress stops.
   */
  readonly onProgress: (share: number | null, label: string) => void;
  /** Removes the progress line until `onProgress` draws it again. */
  readonly clear: () => void;
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal;
}

interface FileParts extends Parts {
  readonly archive: ArchiveStore;
}

export interface StoreParts extends FileParts {
  readonly config: Config;
  readonly database: Database;
  readonly databaseUrl: Secret;
  /** The clock of Postgres. */
  readonly clock: Clock;
}

interface Opening {
  /** The message after Ctrl-C. */
  readonly stopped?: string;
  readonly mayCreate?: boolean;
}

/** Runs `fn` with the archive of this storage, a progress line, and a signal for Ctrl-C. */
export async function onFiles<T>(
  io: StoreIo,
  storage: ArchiveStorage,
  fn: (parts: FileParts) => Promise<T>,
  { stopped }: Opening = {},
): Promise<T> {
  const line = createProgressLine(io.stderr, io.clock);
  const archive = createArchiveStore(storage);
  const work = (signal: AbortSignal) => {
    const onProgress = (share: number | null, label: string) => {
      signal.throwIfAborted();
      line.update(share === null ? label : `${drawBar(share)}  ${label}`);
    };
    return fn({ archive, signal, onProgress, clear: () => line.clear() });
  };
  try {
    return await untilStopped(io, work, stopped);
  } finally {
    line.clear();
    await archive.duckdb.close();
  }
}

/** The same with the service's database. Creates an embedded database only if `mayCreate` is set. */
export function onStore<T>(
  io: StoreIo,
  config: Config,
  fn: (parts: StoreParts) => Promise<T>,
  opening: Opening = {},
): Promise<T> {
  const open = async (database: Database, databaseUrl: Secret) => {
    const clock = await readServiceClock(database, io.clock);
    const work = (parts: FileParts) => fn({ ...parts, config, database, databaseUrl, clock });
    return onFiles(io, createStorage(config.archive, database.db), work, opening);
  };
  return withStore(config, open, opening);
}
