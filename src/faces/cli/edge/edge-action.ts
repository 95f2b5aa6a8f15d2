import type { Command } from "commander";
import { createEdgeClient, type EdgeClient } from "#adapters/edge/edge-client.ts";
import { EdgeError } from "#adapters/edge/edge-error.ts";
import { createEdgeTransport } from "#adapters/edge/transport/transport.ts";
import { toError, UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import type { Secret } from "#lib/secret.ts";
import { escapeText } from "#lib/text.ts";
import { findRemedy } from "../start/describe-failure.ts";
import { describeUnknown } from "../store/store-command.ts";
import { addHelp } from "../terminal/help.ts";
import { type EdgeIo, OutputClosedError } from "./edge-io.ts";
import { createFlagReader, type FlagReader } from "./flag-reader.ts";

export interface Connection {
  readonly baseUrl: string;
  readonly accessKey: Secret;
}

/** The dependencies of every subcommand. */
export interface EdgeSetup {
  readonly getConnection: () => Connection;
  readonly io: EdgeIo;
}

/** The context of one run of a subcommand. */
export interface EdgeRun {
  readonly read: FlagReader;
  readonly io: EdgeIo;
  /** The total time of a call in ms if --timeout was typed, else null. */
  readonly typedTimeoutMs: number | null;
  /** Whether --json was given. Only the export has another output without it. */
  readonly isJson: boolean;
  /** Throws all mistakes of the flags together, or runs `work` with a client and then closes the client. */
  readonly call: (work: (client: EdgeClient) => Promise<void>) => Promise<void>;
}

function listMistakes(io: EdgeIo, mistakes: readonly string[]): void {
  const lines = mistakes.map((mistake) => `  - ${mistake}\n`).join("");
  io.stderr.write(`longwatch edge: ${many(mistakes.length, "mistake")}, nothing was sent\n${lines}`);
  io.setExitCode(2);
}

function listNotes(io: EdgeIo, notes: readonly string[]): void {
  if (notes.length === 0) return;
  const lines = notes.map((note) => `  - ${note}\n`).join("");
  io.stderr.write(
    `longwatch edge: the body is sent as it was written. ${many(notes.length, "member")} outside the platform's official description:\n${lines}`,
  );
}

function hint(error: EdgeError): string {
  const wait = error.waitMs === undefined ? "" : `\n  try again in ${Math.ceil(error.waitMs / 1_000)} s`;
  const remedy = findRemedy(error, { typed: true });
  return remedy === null ? wait : `${wait}\n  ${remedy}`;
}

/** Prints the error. Sets exit code 2 for a mistake in the command line and 1 for a later failure. */
function report(io: EdgeIo, thrown: unknown): void {
  if (thrown instanceof OutputClosedError) return;
  if (thrown instanceof UsageError) return listMistakes(io, thrown.mistakes.map(escapeText));
  if (thrown instanceof EdgeError && thrown.code === "EDGE_INVALID_REQUEST")
    return listMistakes(io, thrown.mistakes);
  const error = toError(thrown);
  const text =
    error instanceof EdgeError ? `${error.code} ${error.message}${hint(error)}` : escapeText(error.message);
  io.stderr.write(`longwatch edge: ${text}\n`);
  io.setExitCode(1);
}

/** Returns the action of a subcommand. `prepare` reads the flags and makes the call. Errors become text and an exit code. */
export function edgeAction<Flags extends object>(
  { getConnection, io }: EdgeSetup,
  prepare: (flags: Flags, run: EdgeRun) => Promise<void>,
) {
  return async (typed: Flags & { readonly json?: true }, command: Command): Promise<void> => {
    // Removed, because --body may be combined with --json but with no other flag.
    const { json, ...given } = typed;
    const flags = given as unknown as Flags;
    const read = createFlagReader(io.clock());
    read.mistakes.push(...describeUnknown(command, command.args));
    const timeout = command.optsWithGlobals<{ timeout: string }>().timeout;
    const timeoutSeconds = read.integer("timeout", timeout, "whole seconds") ?? 0;
    if (timeoutSeconds < 1 || timeoutSeconds > 3_600) read.wrong("timeout", timeout, "1 to 3600 seconds");
    // The failing write reports a closed pipe. Without this listener, the error event would end the process.
    io.stdout.on("error", () => {});
    try {
      await prepare(flags, {
        read,
        io,
        typedTimeoutMs:
          command.getOptionValueSourceWithGlobals("timeout") === "cli" ? timeoutSeconds * 1_000 : null,
        isJson: json === true,
        async call(work) {
          read.finish();
          listNotes(io, read.notes);
          const transport = createEdgeTransport({
            ...getConnection(),
            timeoutMs: timeoutSeconds * 1_000,
            onWarning: (warning) => void io.stderr.write(`longwatch edge: warning: ${warning}\n`),
          });
          try {
            await work(createEdgeClient(transport));
          } finally {
            await transport.close();
          }
        },
      });
    } catch (thrown) {
      report(io, thrown);
    }
  };
}

/** Adds a subcommand that reports unknown options and arguments together with its other mistakes. */
export function addSubcommand(
  parent: Command,
  name: string,
  description: string,
  examples: readonly string[],
  json = "no effect: the output is always JSON",
): Command {
  const command = parent
    .command(name)
    .description(description)
    .option("--json", json)
    .allowUnknownOption()
    .allowExcessArguments();
  const lines = examples.map((example) => `  npm run -s longwatch -- edge ${example}`);
  return addHelp(command, `\nExamples:\n${lines.join("\n")}`);
}
