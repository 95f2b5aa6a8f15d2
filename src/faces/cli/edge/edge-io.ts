import { once } from "node:events";
import type { Readable, Writable } from "node:stream";
import { type Clock, systemClock } from "#lib/clock.ts";

/** Streams, clock and exit of a command. Tests pass their own. */
export interface EdgeIo {
  readonly stdin: Readable;
  readonly stdout: Writable & { readonly isTTY?: boolean };
  readonly stderr: Writable;
  readonly clock: Clock;
  /** Ends the process at once, after the help or after a command line that cannot be parsed. */
  exit(code: number): void;
  /** Sets the exit code with which the process will end. */
  setExitCode(code: number): void;
}

export function createProcessIo(): EdgeIo {
  return {
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    clock: systemClock,
    exit: (code) => process.exit(code),
    setExitCode: (code) => {
      process.exitCode = code;
    },
  };
}

/** Thrown if the reader of the output is gone (`| head`). The command then ends silently. */
export class OutputClosedError extends Error {
  override readonly name = "OutputClosedError";
}

/** Writes at the reader's pace. Throws OutputClosedError once the reader is gone. */
export async function writeOut(out: Writable, chunk: string | Uint8Array): Promise<void> {
  if (out.destroyed || out.errored !== null) throw new OutputClosedError();
  if (out.write(chunk)) return;
  try {
    await once(out, "drain");
  } catch (cause) {
    throw new OutputClosedError("the output was closed", { cause });
  }
}
