import { toError } from "#lib/errors.ts";
import { SECRETS } from "./environment.ts";
import { findSecretFault, readSecretText } from "./secret-file.ts";

/** Fills in secrets that are given as a file, without the last line end. Returns the mistakes. */
export function readSecretFiles(given: Record<string, string>): string[] {
  const mistakes: string[] = [];
  for (const name of SECRETS) {
    const file = given[`${name}_FILE`];
    if (file === undefined) continue;
    if (given[name] !== undefined) {
      mistakes.push(
        `${name}_FILE: ${JSON.stringify(file)}: must not be set together with ${name}: remove one of the two`,
      );
      continue;
    }
    try {
      const text = readSecretText(file);
      const fault = findSecretFault(text);
      if (fault === null) given[name] = text;
      else mistakes.push(`${name}_FILE: ${JSON.stringify(file)}: ${fault}`);
    } catch (thrown) {
      mistakes.push(
        `${name}_FILE: ${JSON.stringify(file)}: must be a readable file (${toError(thrown).message})`,
      );
    }
  }
  return mistakes;
}
