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
        if (text === "") return { mistake: "must not be empty" };
        if (text === current.reveal()) return "same";
        current = createSecret(text);
        return "changed";
      } catch (thrown) {
        return { mistake: `must be a readable file (${toError(thrown).message})` };
      }
    },
  };
}
