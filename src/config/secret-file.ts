import { inspect } from "node:util";
import { toError } from "#lib/errors.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { readSmallFile } from "./read-small-file.ts";

/** Whether the file has another secret than before, or why it cannot be read. */
export type Reread = "same" | "changed" | { readonly mistake: string };

export interface RereadSecret {
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
  if (/[\r\n]/.test(text)) return "must have one line: the secret and nothing else";
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
