import { readFile } from "node:fs/promises";
import type { Readable } from "node:stream";
import { toError } from "#lib/errors.ts";
import { readBody } from "#lib/http.ts";
import type { FlagReader } from "./flag-reader.ts";

const MAX_BODY_BYTES = 4 * 1_024 * 1_024;

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
