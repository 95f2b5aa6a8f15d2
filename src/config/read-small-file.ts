import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { toError } from "#lib/errors.ts";

/** Larger than any configuration file or secret. */
const MAX_BYTES = 1_048_576;

/**
 * Returns the text of a file. Refuses a file that is not regular: a device may never end, and a pipe may never begin.
 * @throws {Error} whose message has the reason but no content of the file.
 */
export function readSmallFile(file: string, maxBytes = MAX_BYTES): string {
  const opened = openFile(file);
  try {
    if (!fstatSync(opened).isFile()) throw new Error("is not a regular file");
    // Reads up to one byte more than allowed. The size is not checked before, because system files report a size of 0.
    const bytes = Buffer.allocUnsafe(maxBytes + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length <= maxBytes; length += read)
      read = readSync(opened, bytes, length, bytes.length - length, null);
    if (length > maxBytes) throw new Error(`has more than ${maxBytes} bytes`);
    return bytes.toString("utf8", 0, length);
  } finally {
    closeSync(opened);
  }
}

function openFile(file: string): number {
  try {
    // Without O_NONBLOCK, opening a pipe would wait for a writer.
    return openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (thrown) {
    const { code } = toError(thrown) as NodeJS.ErrnoException;
    throw new Error(code ?? "unreadable", { cause: thrown });
  }
}
