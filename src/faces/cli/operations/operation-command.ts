import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import type { Paint } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { isObject } from "#lib/json.ts";
import { toPlainTexts } from "#lib/text.ts";
import type { Cell, CommandForm, Operation } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { writeJson, writeOut } from "../edge/edge-io.ts";
import type { FlagReader } from "../edge/flag-reader.ts";
import { readActor, readAfter } from "../options/read-options.ts";
import {
  commandGroup,
  type StoreIo,
  storeAction,
  storeCommand,
  toCommandError,
} from "../store/store-command.ts";
import { drawTable, pickPaint } from "../terminal/print.ts";
import {
  addFlag,
  checkInput,
  describeFlag,
  isMany,
  listFlags,
  readInput,
  type Typed,
  toList,
  typedOption,
  wordMistake,
} from "./flags.ts";
import { allowRemote, pickAsk, readPages } from "./remote-commands.ts";

// A form is contravariant in its output.
type Form = CommandForm<any, any>;

/** Members of a list's input that the command line reads itself. */
const PAGING: readonly string[] = ["limit", "after"];

/** Creates the command of a subject, such as `silences` or `config routes`, with one below it for each operation. */
export function subjectCommand(
  name: string,
  description: string,
  operations: readonly Operation[],
  readConfig: () => Config,
  io: StoreIo,
  others: readonly Command[] = [],
): Command {
  let own: Command | undefined;
  const commands: Command[] = [];
  for (const operation of operations)
    for (const form of [operation.command ?? []].flat() as Form[])
      if (form.name === "") own = operationCommand(operation, { ...form, name }, readConfig, io);
      else commands.push(operationCommand(operation, form, readConfig, io));
  if (own === undefined) return commandGroup(name, description, io, [...commands, ...others]);
  for (const command of [...commands, ...others]) own.addCommand(command);
  return own;
}

/** Creates the command of an operation: its flags, help, mistakes, table and exit code. */
function operationCommand(operation: Operation, shown: Form, readConfig: () => Config, io: StoreIo): Command {
  const { changes } = operation;
  const { name = operation.name.split(".").at(-1) ?? "", summary = operation.summary, preset = {} } = shown;
  const known = listFlags(operation).filter(({ path }) => !Object.hasOwn(preset, path[0] ?? ""));
  const isPaged = PAGING.every((member) => known.some((flag) => flag.name === member));
  const flags = shown.limit === null ? known.filter((flag) => !PAGING.includes(flag.name)) : known;
  const most = shown.limit === null ? Number.POSITIVE_INFINITY : (shown.limit ?? 1_000);
  const examples = shown.examples.map((example) => `  npm run -s longwatch -- ${example}`).join("\n");
  const help = `\n${shown.help === undefined ? "" : `${shown.help}\n\n`}Examples:\n${examples}`;
  const command = storeCommand(name, help, io, `${summary}.`);
  const operands = flags.filter(({ isOperand }) => isOperand);
  if (operands.length > 0)
    command.usage(
      `[options] ${operands.map((flag) => (isMany(flag) ? `[<${flag.name}> ...]` : `<${flag.name}>`)).join(" ")}`,
    );
  for (const flag of operands)
    command.argument(`[${flag.name}${isMany(flag) ? "..." : ""}]`, describeFlag(flag));
  for (const flag of flags.filter(({ isOperand }) => !isOperand))
    if (isPaged && flag.name === "limit") addFlag(command, flag, `show at most this many (default: ${most})`);
    else addFlag(command, flag);
  if (changes)
    command.option("--by <name>", "name of the person who does it (default: the user who runs the command)");
  command.option("--json", "print the answer as JSON");
  return allowRemote(command).action(
    storeAction<Record<string, unknown>>(io, async (options, read, args) => {
      const nowMs = io.clock();
      const typed: Typed = (flag) => {
        if (isMany(flag) && flag.isOperand) return args.length === 0 ? undefined : args;
        // People type the numbers as lists show them: #3.
        if (flag.isOperand) return toList(args[operands.indexOf(flag)]?.replace(/^#/, ""));
        return typedOption(options, flag);
      };
      const input: Record<string, unknown> = { ...preset, ...readInput(flags, typed, nowMs, read.mistakes) };
      const { limit, ...unlimited } = input;
      const checked = isPaged ? unlimited : input;
      checkInput(operation.input, checked, { flags, typed, mistakes: read.mistakes });
      const size = isPaged ? readLimit(read, limit) : undefined;
      const config = readAfter(read, readConfig);
      const actor = changes ? readActor(read, options["by"] as string | undefined, config) : null;
      read.finish();
      const ask = pickAsk(config, io, actor);
      try {
        const output = isPaged
          ? await readPages(ask, operation, checked, size ?? most)
          : await ask(operation, checked);
        if (options["json"] === true) await writeJson(io.stdout, output);
        else {
          const about = {
            now: nowMs,
            input,
            paint: pickPaint(io),
            columns: columnsOf(io),
            isTTY: io.stdout.isTTY === true,
          };
          await writeOut(io.stdout, show(shown, toPlainTexts(output), about));
        }
        const exitCode = shown.exitCode?.(output) ?? 0;
        if (exitCode !== 0) io.setExitCode(exitCode);
      } catch (thrown) {
        if (!(thrown instanceof Refusal)) throw thrown;
        throw toCommandError(thrown, (mistake) => wordMistake(mistake, flags, typed));
      }
    }),
  );
}

/** Reads how many rows are asked for, which may be more than a page has. */
function readLimit(read: FlagReader, typed: unknown): number | undefined {
  if (typeof typed !== "string") return undefined;
  if (/^([1-9]\d{0,3}|10000)$/.test(typed)) return Number(typed);
  return read.wrong("limit", typed, "a whole number from 1 to 10,000");
}

/** Returns the width of the terminal, or that of a text that goes to a file. */
function columnsOf({ stdout: { isTTY, columns = 0 } }: StoreIo): number {
  return isTTY === true && columns > 0 ? columns : 100;
}

interface About {
  readonly now: number;
  readonly input: Record<string, unknown>;
  readonly paint: Paint;
  readonly columns: number;
  /** Whether a table has to fit into the columns. In a pipe each row is one line. */
  readonly isTTY: boolean;
}

function show({ columns, empty = "Nothing to show.", say }: Form, output: unknown, about: About): string {
  const table = (heads: readonly string[], rows: readonly (readonly Cell[])[]) =>
    drawTable(heads, rows, about.paint, about.isTTY ? about.columns : undefined);
  const said = say?.(output, { ...about, table }) ?? "";
  if (columns === undefined) return said;
  const { items, points, next = null } = isObject(output) ? output : {};
  const more =
    typeof next === "string"
      ? `There are more: --after ${next} shows the next page, --limit sets its size.\n`
      : "";
  const cells = [items ?? points ?? []].flat().map((item) => columns.map(({ get }) => get(item, about)));
  const heads = columns.map(({ head }) => head);
  return cells.length === 0 ? `${empty}\n${said}` : `${table(heads, cells)}${more}${said}`;
}
