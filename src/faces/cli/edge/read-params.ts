import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import type { Command } from "commander";
import { z } from "zod";
import { toError } from "#lib/errors.ts";
import { readBody } from "#lib/http.ts";
import { addFlag, checkInput, listFlags, readInput, typedOption } from "../operations/flags.ts";
import type { EdgeIo } from "./edge-io.ts";
import type { FlagReader } from "./flag-reader.ts";

const MAX_BODY_BYTES = 4 * 1_024 * 1_024;

interface Reading {
  readonly read: FlagReader;
  readonly io: EdgeIo;
}

/**
 * Adds the flags of a call to its command, and returns what reads its parameters. After a mistake, which `read` then has,
 * the parameters are undefined.
 */
export type ParamsOf<Params> = (
  command: Command,
) => (options: Readonly<Record<string, unknown>>, reading: Reading) => Promise<Params | undefined>;

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
export async function readBodyFile(read: FlagReader, source: string, stdin: Readable): Promise<unknown> {
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
