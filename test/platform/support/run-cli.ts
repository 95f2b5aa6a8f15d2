import { Readable, Writable } from "node:stream";
import { Command } from "commander";
import { edgeCommand } from "#faces/cli/edge/edge.ts";
import { createSecret } from "#lib/secret.ts";
import { ACCESS_KEY, NOW } from "./edge-test.ts";

class Ended extends Error {}

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export function collector(isTTY = false) {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream: Object.assign(stream, { isTTY }), text: () => Buffer.concat(chunks).toString() };
}

/** Runs the command in this process: same code, other streams. */
export async function runCli(
  url: string,
  args: readonly string[],
  { stdin = "", isTTY = false } = {},
): Promise<Ran> {
  let code = 0;
  const out = collector(isTTY);
  const err = collector();
  const edge = edgeCommand(() => ({ baseUrl: url, accessKey: createSecret(ACCESS_KEY) }), {
    stdin: Readable.from([Buffer.from(stdin)]),
    stdout: out.stream,
    stderr: err.stream,
    clock: () => NOW,
    setExitCode: (value) => {
      code = value;
    },
    exit(value) {
      code = value;
      throw new Ended();
    },
  });
  try {
    await new Command("longwatch").addCommand(edge).parseAsync(["edge", ...args], { from: "user" });
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
  }
  return { code, out: out.text(), err: err.text() };
}
