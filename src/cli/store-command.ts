import { Command } from "commander";
import { readSqlState } from "../../db/sql-state.ts";
import { EdgeError } from "../edge/edge-error.ts";
import { escapeText } from "../edge/escape-text.ts";
import { toError, UsageError } from "../errors.ts";
import { type EdgeIo, OutputClosedError } from "./edge/edge-io.ts";
import { createFlagReader, type FlagReader } from "./edge/flag-reader.ts";

/** A command's surroundings; tests hand in their own. */
export interface StoreIo extends EdgeIo {
  readonly stdout: EdgeIo["stdout"] & { readonly hasColors?: () => boolean };
  readonly stderr: EdgeIo["stderr"] & { readonly isTTY?: boolean; readonly columns?: number };
}

const UNDEFINED_TABLE = "42P01";
const UNDEFINED_COLUMN = "42703";

/** A command on the store that reports unknown options and arguments together with its other mistakes. */
export function storeCommand(name: string, description: string, help: string, io: StoreIo): Command {
  return new Command(name)
    .description(description)
    .allowUnknownOption()
    .allowExcessArguments()
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
    .exitOverride((error) => io.exit(error.exitCode === 0 ? 0 : 2))
    .addHelpText("after", help);
}

/**
 * The action of such a command. `run` reads its flags, calls `read.finish()`, and only then does anything. Errors end
 * here: exit code 2 for what was typed or set, 1 for everything that went wrong afterwards.
 */
export function storeAction<Flags extends object>(
  io: StoreIo,
  run: (flags: Flags, read: FlagReader) => Promise<void>,
) {
  return async (flags: Flags, command: Command): Promise<void> => {
    const read = createFlagReader(io.clock());
    read.mistakes.push(
      ...command.args
        .slice(command.registeredArguments.length)
        .map((excess) => `"${escapeText(excess)}" is not an argument or option of this command`),
    );
    // A closed pipe is read from the write that fails; without a listener the event would end the process.
    io.stdout.on("error", () => {});
    try {
      await run(flags, read);
    } catch (thrown) {
      report(io, fullName(command), thrown);
    }
  };
}

/** As it is typed: with the command it belongs to, where that is not the program. */
function fullName(command: Command): string {
  const { parent } = command;
  return parent?.parent == null ? command.name() : `${parent.name()} ${command.name()}`;
}

function report(io: StoreIo, name: string, thrown: unknown): void {
  if (thrown instanceof OutputClosedError) return;
  if (thrown instanceof UsageError) {
    const lines = thrown.mistakes.map((mistake) => `  - ${escapeText(mistake)}\n`).join("");
    io.stderr.write(
      `longwatch ${name}: ${thrown.mistakes.length} mistake(s), nothing was read or stored\n${lines}`,
    );
    io.setExitCode(2);
    return;
  }
  io.stderr.write(`longwatch ${name}: ${describe(thrown)}\n`);
  io.setExitCode(1);
}

function describe(thrown: unknown): string {
  const state = readSqlState(thrown);
  if (state === UNDEFINED_TABLE || state === UNDEFINED_COLUMN)
    return "the database has not the tables of this version: start the service once (npm start)";
  const error = toError(thrown);
  const cause = error.cause instanceof Error && error.cause.message !== "" ? `: ${error.cause.message}` : "";
  if (error instanceof EdgeError) return `${error.code} ${error.message}`;
  return escapeText(`${error.message}${cause}`);
}
