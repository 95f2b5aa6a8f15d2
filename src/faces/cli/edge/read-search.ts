/** Reads the parameters of a call, and the search that it asks for. */

import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { Command } from "commander";
import { z } from "zod";
import { type ColumnChoice, refuseColumns } from "#archive/rules/records/to-row.ts";
import { toError } from "#lib/errors.ts";
import { readBody } from "#lib/http.ts";
import { isObject } from "#lib/json.ts";
import { FIELD_NAMES } from "#model/fields.ts";
import { DIMENSIONS, OPERATORS } from "#platform/contract/event-logs.ts";
import { addFlag, checkInput, listFlags, readInput, typedOption } from "../operations/flags.ts";
import type { EdgeIo } from "./edge-io.ts";
import type { FlagReader } from "./flag-reader.ts";

/** Flags that search and export share. */
export interface WindowFlags {
  readonly zone?: string;
  /** Only where Longwatch keeps the events. */
  readonly account?: string;
  readonly from?: string;
  readonly to?: string;
  readonly query?: string;
  readonly filter?: readonly string[];
  readonly body?: string;
}

/** Flags that choose the columns of events, where Longwatch keeps them. */
export interface ColumnFlags {
  readonly columns?: string | undefined;
  readonly timeZone?: string | undefined;
}

/** Flags that only a search has. */
export interface SearchFlags extends WindowFlags {
  readonly groupBy?: string;
  readonly buckets?: string;
  readonly page?: string;
  readonly pageSize?: string;
  readonly pageAll?: true;
  readonly limit?: string;
}

interface Reading {
  readonly read: FlagReader;
  readonly io: Pick<EdgeIo, "stdin">;
}

const LIMIT_RULE = "a whole number from 1";

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

/** Says how a filter on the events that Longwatch keeps is written. */
export const FILTER_HELP = `field:op:value[,value], op one of ${OPERATORS.join(", ")}, or one of them after not-; repeatable, all must match`;

/** `isOwn` for a search of the events that Longwatch keeps, which knows more fields than the platform. */
export function addWindowOptions(command: Command, isOwn = false): Command {
  if (isOwn)
    command
      .option("--columns <names>", "columns of each event, such as time,method,host,path,query")
      .option("--time-zone <name>", "time zone of the column time, such as Europe/Amsterdam (default: UTC)")
      .option("--zone <ids>", "shield zone, several with commas, or all (required without --account)")
      .option("--account <name>", "the zones of this account, in the place of --zone");
  else command.option("--zone <id>", "shield zone (required)");
  return command
    .option("--from <time>", "window start: epoch ms, ISO-8601 or relative such as -2h (required)")
    .option("--to <time>", "window end (default: now)")
    .option("--query <text>", "free text across IP, rule, URL, User-Agent and rule name")
    .option(
      "--filter <field:op:value>",
      isOwn
        ? FILTER_HELP
        : `field:op:value[,value], op one of ${OPERATORS.join(", ")}; repeatable, all must match`,
      collect,
    )
    .option("--body <file>", "the whole request as JSON instead of flags; - for standard input");
}

/** Adds the options of a search: of the platform's events and of the kept events. */
export function addSearchOptions(command: Command, isOwn = false): Command {
  const names = isOwn ? FIELD_NAMES : DIMENSIONS;
  return addWindowOptions(command, isOwn)
    .option("--group-by <dimensions>", `group by these, separated by commas: ${names.join(", ")}`)
    .option("--buckets <number>", "time buckets of each group's sparkline; clamped to 500")
    .option("--page <index>", "page, from 0")
    .option("--page-size <number>", "rows or groups per page; clamped to 1..500 (50 when unset)")
    .option("--page-all", "follow all pages and join them")
    .option("--limit <number>", "at most this many rows or groups, from as many pages as they need");
}

/** Returns the columns that the flags name; null without any. `asked` as in `refuseColumns`. */
export function readColumnFlags(
  read: FlagReader,
  { columns: names, timeZone }: ColumnFlags,
  asked: { readonly isExport: boolean; readonly beside: string | null },
): ColumnChoice | null {
  const columns = names?.split(",");
  for (const { field, value, rule } of refuseColumns({ columns, timeZone }, asked))
    read.wrong(field === "columns" ? field : "time-zone", value, rule);
  return columns === undefined ? null : { columns, timeZone };
}

/** Reads the options that only a search has. `more` are members of its request. `isOwn` as in `addSearchOptions`. */
export function readSearchFlags(
  { groupBy, buckets, page, pageSize, pageAll, limit: most, ...window }: SearchFlags,
  read: FlagReader,
  isOwn = false,
) {
  const limit = read.integer("limit", most, LIMIT_RULE);
  if (limit !== undefined && limit < 1) read.wrong("limit", most, LIMIT_RULE);
  const more = {
    groupBy: groupBy === undefined || isOwn ? groupBy?.split(",") : readDimensions(read, groupBy),
    buckets: read.integer("buckets", buckets, "a whole number"),
    page: read.integer("page", page, "a whole number from 0"),
    pageSize: read.integer("page-size", pageSize, "a whole number"),
  };
  const given = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined));
  return { window, more: given, limit, pageAll: pageAll === true };
}

function readDimensions(read: FlagReader, text: string): readonly string[] {
  const names = text.split(",");
  const wrong = names.filter((name) => !DIMENSIONS.some((one) => one === name));
  for (const name of wrong) read.wrong("group-by", name, `one or more of ${DIMENSIONS.join(", ")}`);
  return names.filter((name) => !wrong.includes(name));
}

/** The flags that select and group events, which the search of the kept events has as well. */
export function byWindow<Schema extends z.ZodType>(
  schema: Schema,
  { isSearch }: { readonly isSearch: boolean },
): ParamsOf<{
  shieldZoneId: number;
  request: z.output<Schema>;
  limit: number | undefined;
  pageAll: boolean;
}> {
  return (command) => {
    if (isSearch) addSearchOptions(command);
    else addWindowOptions(command);
    return async (options, reading) => {
      const flags = options as SearchFlags;
      const shieldZoneId = reading.read.id("zone", flags.zone, "a shield zone's number");
      const { window, more, limit, pageAll } = readSearchFlags(flags, reading.read);
      const request = await readSearch(schema, window, more, reading);
      if (shieldZoneId === undefined || request === undefined) return undefined;
      return { shieldZoneId, request, limit, pageAll };
    };
  };
}

/** Builds a search or export request. `more` holds members that only one of the two has. */
async function readSearch<Schema extends z.ZodType>(
  schema: Schema,
  flags: WindowFlags,
  more: Record<string, unknown>,
  reading: Reading,
): Promise<z.output<Schema> | undefined> {
  const request = await readRequest(flags, more, reading);
  return request === undefined ? undefined : reading.read.check(schema, request, listUnread(flags, request));
}

/** Returns the members of a request whose flags could not be read, which is reported already. */
export function listUnread({ body }: WindowFlags, request: unknown): string[] {
  if (body !== undefined || !isObject(request)) return [];
  return ["from", "to"].filter((name) => request[name] === undefined);
}

/** Returns a request as it was given in flags or in `--body`; its members are not checked. Undefined without a body. */
export async function readRequest(
  flags: WindowFlags,
  more: Record<string, unknown>,
  { read, io }: Reading,
): Promise<unknown> {
  if (flags.body !== undefined) {
    const { zone: _zone, account: _account, body, ...others } = flags;
    if (Object.keys(others).length > 0 || Object.keys(more).length > 0) {
      read.wrong("body", body, "given without the flags of the request");
    }
    return readBodyFile(read, flags.body, io.stdin);
  }
  const from = read.time("from", flags.from);
  const to = read.time("to", flags.to ?? "now");
  const filters = read.filters(flags.filter ?? []);
  return {
    from,
    to,
    ...(flags.query === undefined ? {} : { query: flags.query }),
    ...(filters.length === 0 ? {} : { filters }),
    ...more,
  };
}

const MAX_BODY_BYTES = 4 * 1_024 * 1_024;

interface CallReading {
  readonly read: FlagReader;
  readonly io: EdgeIo;
}

/**
 * Adds the flags of a call to its command, and returns what reads its parameters. After a mistake, which `read` then has,
 * the parameters are undefined.
 */
export type ParamsOf<Params> = (
  command: Command,
) => (options: Readonly<Record<string, unknown>>, reading: CallReading) => Promise<Params | undefined>;

/**
 * The members of a schema are flags. With `body`, the member `request` may be a file instead: a request that a person
 * wrote is checked by the contract's schema.
 */
export function byMembers<Input extends z.ZodObject>(
  input: Input,
  body?: { readonly schema: z.ZodType; readonly help: string },
): ParamsOf<z.output<Input>> {
  return (command) => {
    const flags = listFlags({ input });
    // The flags of a request are not required beside --body.
    for (const flag of flags)
      addFlag(command, { ...flag, isRequired: flag.isRequired && flag.path[0] !== "request" });
    if (body !== undefined)
      command.option("--body <file>", `${body.help} instead of flags; - for standard input`);
    return async (options, { read, io }) => {
      const { mistakes } = read;
      const checking = {
        flags,
        typed: (flag: (typeof flags)[number]) => typedOption(options, flag),
        mistakes,
      };
      const given = readInput(flags, checking.typed, io.clock(), mistakes);
      const file = options["body"];
      if (body === undefined || typeof file !== "string")
        return checkInput(input, body === undefined ? given : { request: {}, ...given }, checking);
      const { request: typed, ...target } = given;
      if (typed !== undefined) read.wrong("body", file, "given without the flags of the request");
      const checked = checkInput(input.omit({ request: true }), target, checking);
      const written = await readBodyFile(read, file, io.stdin);
      const request = written === undefined ? undefined : read.checkBody(body.schema, written);
      return { ...checked, request } as z.output<Input>;
    };
  };
}

/** Reads the JSON of `--body FILE` or `--body -` (standard input). Returns undefined and notes a mistake if it cannot be read. */
async function readBodyFile(read: FlagReader, source: string, stdin: Readable): Promise<unknown> {
  try {
    const bytes = source === "-" ? await readBody(stdin, MAX_BODY_BYTES) : await readFile(source);
    return JSON.parse(bytes.toString("utf8"));
  } catch (thrown) {
    return read.wrong(
      "body",
      source,
      `a file with JSON, or - for standard input (${toError(thrown).message})`,
    );
  }
}
