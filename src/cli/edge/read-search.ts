import type { Command } from "commander";
import type { z } from "zod";
import { OPERATORS } from "../../edge/contract/event-logs-search.ts";
import type { EdgeRun } from "./edge-action.ts";
import { readBodyFile } from "./read-body-file.ts";

/** Flags that search and export share. */
export interface WindowFlags {
  readonly zone?: string;
  readonly from?: string;
  readonly to?: string;
  readonly query?: string;
  readonly filter?: readonly string[];
  readonly body?: string;
}

function collect(value: string, previous: readonly string[] = []): readonly string[] {
  return [...previous, value];
}

export function addWindowOptions(command: Command): Command {
  return command
    .option("--zone <id>", "shield zone (required)")
    .option("--from <time>", "window start: epoch ms, ISO-8601 or relative such as -2h (required)")
    .option("--to <time>", "window end (default: now)")
    .option("--query <text>", "free text across IP, rule, URL, User-Agent and rule name")
    .option(
      "--filter <field:op:value>",
      `field:op:value[,value], op one of ${OPERATORS.join(", ")}; repeatable, all must match`,
      collect,
    )
    .option("--body <file>", "the whole request as JSON instead of flags; - for standard input");
}

/** Builds a search or export request from flags or from `--body`. `more` holds members that only one of the two has. */
export async function readSearch<Schema extends z.ZodType>(
  schema: Schema,
  flags: WindowFlags,
  more: Record<string, unknown>,
  { read, io }: EdgeRun,
): Promise<z.output<Schema> | undefined> {
  if (flags.body !== undefined) {
    const { zone: _zone, body, ...others } = flags;
    if (Object.keys(others).length > 0 || Object.keys(more).length > 0) {
      read.wrong("body", body, "given without the flags of the request");
    }
    const given = await readBodyFile(read, flags.body, io.stdin);
    return given === undefined ? undefined : read.check(schema, given);
  }
  const from = read.time("from", flags.from);
  const to = read.time("to", flags.to ?? "now");
  const filters = read.filters(flags.filter ?? []);
  const request = {
    from,
    to,
    ...(flags.query === undefined ? {} : { query: flags.query }),
    ...(filters.length === 0 ? {} : { filters }),
    ...more,
  };
  return read.check(schema, request, [
    ...(from === undefined ? ["from"] : []),
    ...(to === undefined ? ["to"] : []),
  ]);
}
