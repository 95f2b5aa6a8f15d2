import { Readable } from "node:stream";
import { Command } from "commander";
import { type StoreIo } from "../../src/cli/store-command.ts";
import { type Config, parseConfig } from "../../src/config.ts";
import { collector, type Ran } from "../edge/support/run-cli.ts";

class Ended extends Error {}

export interface Terminal {
  readonly isTTY?: boolean;
  readonly hasColors?: boolean;
  readonly now: number;
}

/** Runs a command of the store in this process: same code, other streams and clock. */
export async function runStoreCommand(
  create: (readConfig: () => Config, io: StoreIo) => Command,
  environment: Record<string, string>,
  args: readonly string[],
  { isTTY = false, hasColors = true, now }: Terminal,
): Promise<Ran> {
  let code = 0;
  const out = collector(isTTY);
  const err = collector();
  const command = create(() => parseConfig(environment), {
    stdin: Readable.from([]),
    stdout: Object.assign(out.stream, { hasColors: () => hasColors }),
    stderr: err.stream,
    clock: () => now,
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
