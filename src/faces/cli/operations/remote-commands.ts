/** Commands that can ask another service. */

import { isDeepStrictEqual } from "node:util";
import type { Command } from "commander";
import { z } from "zod";
import type { Config } from "#config/config.ts";
import { UsageError } from "#lib/errors.ts";
import { isObject } from "#lib/json.ts";
import type { AskOperation, Operation } from "#operations/operation.ts";
import type { StoreIo } from "../store/store-command.ts";
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

/**
 * Returns how operations are run: on the service that the configuration names, else on the database. Either way is loaded
 * for the first operation, so that help and mistakes need neither the HTTP client nor the code of the searches. When
 * `stopped` aborts, a request to the service ends.
 */
export function pickAsk(
  config: Config,
  { clock }: Pick<StoreIo, "clock">,
  actor: string | null,
  stopped?: AbortSignal,
): AskOperation {
  return async (operation, input) => {
    if (config.remote !== null) {
      const { askRemotely } = await import("./ask-remotely.ts");
      return askRemotely(config.remote, stopped)(operation, input);
    }
    const { askLocally } = await import("./ask-locally.ts");
    return askLocally({ config, clock, actor })(operation, input);
  };
}

/**
 * Reads pages of a list until `limit` items are there or the list ends. Returns them as one page. Of what else the
 * pages say, lists are joined, and the first page counts for the rest.
 */
export async function readPages(
  ask: AskOperation,
  operation: Operation,
  input: Readonly<Record<string, unknown>>,
  limit: number,
): Promise<Record<string, unknown>> {
  const most = readMost(operation);
  const items: unknown[] = [];
  let about: Record<string, unknown> = {};
  let after = input["after"];
  for (;;) {
    const size = String(Math.min(most, limit - items.length));
    const page = await ask(operation, { ...input, limit: size, ...(after === undefined ? {} : { after }) });
    const { items: more, next, ...said } = isObject(page) ? page : {};
    about = join(about, said);
    items.push(...(Array.isArray(more) ? more : []));
    if (typeof next !== "string") return { items, next: null, ...about };
    if (items.length >= limit) return { items, next, ...about };
    if (next === after) throw new Error("the list does not end: a page names itself as the next one");
    after = next;
  }
}

function join(known: Record<string, unknown>, more: Record<string, unknown>): Record<string, unknown> {
  const joined = Object.entries(more).map(([name, value]) => {
    const list = known[name];
    if (!Array.isArray(list) || !Array.isArray(value)) return [name, list ?? value] as const;
    return [
      name,
      [...list, ...value.filter((one) => !list.some((own) => isDeepStrictEqual(own, one)))],
    ] as const;
  });
  return { ...known, ...Object.fromEntries(joined) };
}

/** Returns the size of the largest page that the operation gives. */
function readMost({ input }: Operation): number {
  const { wire } = z.globalRegistry.get((input as z.ZodObject).shape["limit"] as z.ZodType) ?? {};
  return typeof wire?.["maximum"] === "number" ? wire["maximum"] : 100;
}
