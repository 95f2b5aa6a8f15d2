import { Command, Option } from "commander";
import { toError, UsageError } from "#lib/errors.ts";
import { many } from "#lib/format.ts";
import type { Secret } from "#lib/secret.ts";
import { escapeText } from "#lib/text.ts";
import { createEdgeClient, type EdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { findRemedy } from "../start/describe-failure.ts";
import { describeUnknown } from "../store/store-command.ts";
import { addGroupHelp, addHelp, listAsTyped } from "../terminal/help.ts";
import { addCalls } from "./calls.ts";
import { createProcessIo, type EdgeIo, OutputClosedError, writeJson } from "./edge-io.ts";
import { createFlagReader } from "./flag-reader.ts";
import type { ParamsOf } from "./read-search.ts";

const GROUPS: Readonly<Record<string, string>> = {
  "api-keys": "API keys of the account.",
  hostname: "Hostnames of pull zones.",
  "dns-zone": "DNS zones.",
  containers: "Container templates of applications.",
  apps: "Container applications.",
  volumes: "Volumes of container applications.",
  events: "Event logs of a shield zone, the last 72 hours.",
  rules: "WAF rules of a shield zone.",
};

interface Connection {
  readonly baseUrl: string;
  readonly accessKey: Secret;
}

/** Returns the connection of an account, or of a zone's account. */
type GetConnection = (asked: {
  readonly account: string | undefined;
  readonly zoneId: number | undefined;
}) => Connection;

/** The context of one call. */
interface EdgeRun {
  readonly io: EdgeIo;
  /** The total time of a call in ms if --timeout was typed, else null. */
  readonly typedTimeoutMs: number | null;
  /** Whether --json was given. Only the export has another output without it. */
  readonly isJson: boolean;
}

interface CallWords {
  /** A group and a verb: `events list`. */
  readonly name: string;
  readonly summary: string;
  readonly examples: readonly string[];
  /** The help of --json. */
  readonly json?: string;
}

/** Adds the command of a call. `send` returns what is printed as JSON; undefined if it has printed everything. */
export type AddCall = <Params>(
  words: CallWords,
  params: ParamsOf<Params>,
  send: (client: EdgeClient, params: Params, run: EdgeRun) => Promise<unknown>,
) => void;

/**
 * `longwatch edge`: calls the platform's eleven operations. Prints JSON (CSV for export) on stdout. Exit code 1 if a call
 * fails, 2 if the command line has a mistake. The settings are read only after the command line is valid.
 */
export function edgeCommand(getConnection: GetConnection, io: EdgeIo = createProcessIo()): Command {
  const edge = new Command("edge")
    .addOption(
      new Option(
        "--timeout <seconds>",
        "total time per call; an export has no limit unless this is given",
      ).default("30", "30"),
    )
    .option(
      "--account <name>",
      "account of the configuration file; if missing, that of the zone, or the first",
    )
    .configureOutput({
      writeOut: (text) => void io.stdout.write(text),
      writeErr: (text) => void io.stderr.write(text),
    })
    .configureHelp({ showGlobalOptions: true })
    .exitOverride((error) => io.exit(error.exitCode === 0 ? 0 : 2));
  // Must come before the subcommands, because each inherits it.
  listAsTyped(edge);
  const groups = new Map(
    Object.entries(GROUPS).map(([name, text]) => [name, edge.command(name).description(text)]),
  );
  addCalls(({ name, ...words }, params, send) => {
    const [group = "", verb = ""] = name.split(" ");
    const command = groups.get(group)?.command(verb) ?? edge.command(name);
    describe(command, words);
    const readParams = params(command);
    command.action(async ({ json, ...options }: Record<string, unknown>) => {
      const { read, timeoutMs, typedTimeoutMs } = readTimeout(command, io);
      // The failing write reports a closed pipe. Without this listener, the error event would end the process.
      io.stdout.on("error", () => {});
      try {
        const given = await readParams(options, { read, io });
        read.finish();
        if (given === undefined) return;
        listNotes(io, read.notes);
        const onWarning = (warning: string) => void io.stderr.write(`longwatch edge: warning: ${warning}\n`);
        const { account } = command.optsWithGlobals<{ account?: string }>();
        const { shieldZoneId: zoneId } = given as { readonly shieldZoneId?: number };
        const connection = getConnection({ account, zoneId });
        const transport = createEdgeTransport({ ...connection, timeoutMs, onWarning });
        try {
          const run = { io, typedTimeoutMs, isJson: json === true };
          const answer = await send(createEdgeClient(transport), given, run);
          if (answer !== undefined) await writeJson(io.stdout, answer);
        } finally {
          await transport.close();
        }
      } catch (thrown) {
        report(io, thrown);
      }
    });
  });
  for (const [name, group] of groups) addGroupHelp(group, `edge ${name}`);
  return addGroupHelp(edge);
}

/** The command reports unknown options and arguments together with its other mistakes. */
function describe(
  command: Command,
  { summary, examples, json = "no effect: the output is always JSON" }: Omit<CallWords, "name">,
): void {
  command.description(summary).option("--json", json).allowUnknownOption().allowExcessArguments();
  const lines = examples.map((example) => `  npm run -s longwatch -- edge ${example}`);
  addHelp(command, `\nExamples:\n${lines.join("\n")}`);
}

/** Returns a reader that has the mistakes of what the command does not know and of --timeout. */
function readTimeout(command: Command, io: EdgeIo) {
  const read = createFlagReader(io.clock());
  read.mistakes.push(...describeUnknown(command, command.args));
  const typed = command.optsWithGlobals<{ timeout: string }>().timeout;
  const seconds = read.integer("timeout", typed, "whole seconds") ?? 0;
  if (seconds < 1 || seconds > 3_600) read.wrong("timeout", typed, "1 to 3600 seconds");
  const timeoutMs = seconds * 1_000;
  const isTyped = command.getOptionValueSourceWithGlobals("timeout") === "cli";
  return { read, timeoutMs, typedTimeoutMs: isTyped ? timeoutMs : null };
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
