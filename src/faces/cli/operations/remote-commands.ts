import type { Command } from "commander";
import { UsageError } from "#lib/errors.ts";
import { fullName } from "../terminal/help.ts";

/** The options of the program that name a service elsewhere. */
const OPTIONS: readonly string[] = ["--url", "--key-file"];
const FLAG = "--plain-http";

/** Commands about this machine. A variable that names a service elsewhere does not concern them. */
const OF_THIS_MACHINE: readonly string[] = [
  "channels",
  "completion",
  "config",
  "doctor",
  "edge",
  "emulator",
  "migrate",
  "start",
];

const remote = new WeakSet<Command>();

/** Marks a command as one that can ask a service elsewhere. */
export function allowRemote(command: Command): Command {
  remote.add(command);
  return command;
}

/** Returns whether a command can ask a service elsewhere. */
export function isRemote(command: Command): boolean {
  return remote.has(command);
}

/** Returns the arguments that are neither options nor the values of those that name a service elsewhere. */
export function listWords(args: readonly string[]): string[] {
  return args.filter((arg, index) => !arg.startsWith("-") && !OPTIONS.includes(args[index - 1] ?? ""));
}

/**
 * Returns the arguments with the options that name a service elsewhere in front of the command, wherever they stand. Behind a
 * command that has an option of the same name, that one is meant.
 */
export function putRemoteFirst(args: readonly string[], program: Command): string[] {
  const words = listWords(args);
  const begin = words[0] === undefined ? args.length : args.indexOf(words[0]);
  let command = program;
  for (const word of words) command = command.commands.find((one) => one.name() === word) ?? command;
  const own = new Set(command.options.map(({ long }) => long));
  const front = args.slice(0, begin);
  const rest: string[] = [];
  for (let index = begin; index < args.length; index++) {
    const arg = args[index] ?? "";
    const [name = ""] = arg.split("=", 1);
    const isMoved = (OPTIONS.includes(name) || arg === FLAG) && !own.has(name);
    const value = isMoved && name === arg && arg !== FLAG ? args[index + 1] : undefined;
    (isMoved ? front : rest).push(arg, ...(value === undefined ? [] : [value]));
    if (value !== undefined) index += 1;
  }
  return [...front, ...rest];
}

/**
 * Lets the options that name a service elsewhere count as the variables of the same names. Refuses a command that cannot ask
 * that service: it would do on this machine what was meant for another one.
 *
 * | the command                        | `--url`    | `LONGWATCH_URL` |
 * |------------------------------------|------------|-----------------|
 * | can ask a service elsewhere        | asks it    | asks it         |
 * | is about this machine              | is refused | runs here       |
 * | works on the database or its files | is refused | is refused      |
 *
 * @throws {UsageError}
 */
export function adoptRemote(
  {
    url,
    keyFile,
    plainHttp,
  }: { readonly url?: string; readonly keyFile?: string; readonly plainHttp?: true },
  command: Command,
  env: NodeJS.ProcessEnv = process.env,
): void {
  const typed = fullName(command);
  const [first = ""] = typed.split(" ");
  const isAsked =
    url !== undefined || ((env["LONGWATCH_URL"] ?? "") !== "" && !OF_THIS_MACHINE.includes(first));
  if (isAsked && !isRemote(command)) {
    const name = url === undefined ? "LONGWATCH_URL" : "--url";
    const rule = "works on the machine of the service. Run it there, without";
    throw new UsageError([`${name} cannot be used with ${typed}, which ${rule} ${name}`]);
  }
  if (url !== undefined) env["LONGWATCH_URL"] = url;
  if (plainHttp === true) env["LONGWATCH_PLAIN_HTTP"] = "true";
  if (keyFile === undefined) return;
  env["LONGWATCH_KEY_FILE"] = keyFile;
  delete env["LONGWATCH_KEY"];
}
