/** Secrets and certificates that are in files. */

import { X509Certificate } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { inspect } from "node:util";
import { toError } from "#lib/errors.ts";
import { createSecret, type Secret } from "#lib/secret.ts";

/** Whether the file has another secret than before, or why it cannot be read. */
export type Reread = "same" | "changed" | { readonly mistake: string };

interface RereadSecret {
  /** Reveals the secret that was read last. */
  readonly secret: Secret;
  /** Reads the file again. A file that cannot be read, or is empty, leaves the secret as it is. */
  readonly reread: () => Reread;
}

/** Returns the text of a secret's file, without its last line end. */
export function readSecretText(file: string): string {
  return readSmallFile(file).replace(/\r?\n$/, "");
}

/**
 * Returns why the text of a secret's file would not be the secret that was meant, or null. Editors and consoles add what a
 * person does not see, and the receiver would only say that the secret is wrong.
 */
export function findSecretFault(text: string): string | null {
  if (text === "") return "must not be empty";
  if (/[\0\uFFFD]/.test(text)) return "must be text in UTF-8, not UTF-16 or another encoding";
  if (text.startsWith("\uFEFF")) return "must not begin with a byte order mark: save it as UTF-8 without one";
  if (/[\r\n]/.test(text) && !text.startsWith("-----BEGIN "))
    return "must have one line: the secret and nothing else";
  return text === text.trim() ? null : "must not begin or end with a blank";
}

/** Returns the secret of a file that may change while the service runs. */
export function openSecretFile(file: string, first: string): RereadSecret {
  let current = createSecret(first);
  const shown = () => current.toString();
  return {
    secret: Object.freeze({
      reveal: () => current.reveal(),
      toString: shown,
      toJSON: shown,
      [inspect.custom]: shown,
    }),
    reread() {
      try {
        const text = readSecretText(file);
        const mistake = findSecretFault(text);
        if (mistake !== null) return { mistake };
        if (text === current.reveal()) return "same";
        current = createSecret(text);
        return "changed";
      } catch (thrown) {
        return { mistake: `must be a readable file (${toError(thrown).message})` };
      }
    },
  };
}

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

/** Returns the text of a file of certificates in PEM, or null if it is no such file or cannot be read. */
export function readCertificates(file: string): string | null {
  try {
    const text = readSmallFile(file);
    void new X509Certificate(text);
    return text;
  } catch {
    return null;
  }
}
