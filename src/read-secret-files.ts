import { readFileSync } from "node:fs";
import { SECRETS } from "./environment.ts";
import { toError } from "./errors.ts";

/** Fills in what is given as a file, its text without the last line end; returns the mistakes. */
export function readSecretFiles(given: Record<string, string>): string[] {
  const mistakes: string[] = [];
  for (const name of SECRETS) {
    const file = given[`${name}_FILE`];
    if (file === undefined) continue;
    if (given[name] !== undefined) {
      mistakes.push(`${name}_FILE: ${JSON.stringify(file)}: must not be set together with ${name}`);
      continue;
    }
    try {
      const text = readFileSync(file, "utf8").replace(/\r?\n$/, "");
      if (text !== "") given[name] = text;
      else mistakes.push(`${name}_FILE: ${JSON.stringify(file)}: must not be empty`);
    } catch (thrown) {
      mistakes.push(
        `${name}_FILE: ${JSON.stringify(file)}: must be a readable file (${toError(thrown).message})`,
      );
    }
  }
  return mistakes;
}
