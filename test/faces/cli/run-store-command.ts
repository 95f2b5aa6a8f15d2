import { Readable, Writable } from "node:stream";
import { Command } from "commander";
import { type Config, parseConfig } from "#config/config.ts";
import { type StoreIo } from "#faces/cli/store/store-command.ts";

class Ended extends Error {}

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function collector(isTTY: boolean) {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      chunks.push(chunk);
      done();
    },
  });
  return { stream: Object.assign(stream, { isTTY }), text: () => Buffer.concat(chunks).toString() };
}

export interface Terminal {
  readonly isTTY?: boolean;
  /** Whether the standard error is a terminal, on which progress is drawn. */
  readonly isErrTTY?: boolean;
  readonly hasColors?: boolean;
  readonly now: number;
  /** The keyboard input; none by default. */
  readonly typed?: string;
  /** Aborts as Ctrl-C does. */
  readonly interrupted?: AbortSignal;
}

/** Runs a command of the store in this process: same code, other streams and clock. Knows nothing of the test runner. */
export async function runStoreCommand(
  create: (readConfig: () => Config, io: StoreIo) => Command,
  environment: Record<string, string>,
  args: readonly string[],
  { isTTY = false, isErrTTY = false, hasColors = true, now, typed, interrupted }: Terminal,
): Promise<Ran> {
  let code = 0;
  const out = collector(isTTY);
  const err = collector(isErrTTY);
  const command = create(() => parseConfig(environment), {
    stdin: Object.assign(Readable.from(typed === undefined ? [] : [typed]), { isTTY: typed !== undefined }),
    stdout: Object.assign(out.stream, { hasColors: () => hasColors }),
    stderr: err.stream,
    clock: () => now,
    ...(interrupted === undefined ? {} : { interrupted }),
    setExitCode: (value) => {
      code = value;
    },
    exit(value) {
      code = value;
      throw new Ended();
    },
  });
  try {
    await new Command("longwatch")
      .addCommand(command)
      .parseAsync([command.name(), ...args], { from: "user" });
  } catch (error) {
    if (!(error instanceof Ended)) throw error;
  }
  return { code, out: out.text(), err: err.text() };
}
