/** What is wrong with the variables of the environment, beyond each one's own rule. */
import path from "node:path";
import { toError } from "#lib/errors.ts";
import { closestName } from "#lib/text.ts";
import { checkAddress, findFolderMistake } from "./check-opening.ts";
import type { Alerting } from "./file/config-file.ts";
import { findSecretFault, readSecretText } from "./secret-file.ts";
import { type Given, SETTINGS, show } from "./settings.ts";

const VARIABLES = SETTINGS.map(({ env }) => env);
const SECRETS = SETTINGS.flatMap(({ env, secret }) => (secret === true ? [env] : []));

/** Returns whether the address is plain HTTP to another machine than this one. */
export function isPlain(url: string | undefined): boolean {
  const { protocol, hostname = "" } = URL.parse(url ?? "") ?? {};
  return protocol === "http:" && !/^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])\.?$/.test(hostname);
}

/** Checks at the start that the fallback channel exists, because it is otherwise used only when another channel fails. */
export function checkFallback(name: string | undefined, known: readonly string[] | null): string[] {
  if (name === undefined || known === null || known.includes(name)) return [];
  const meant = closestName(name, known);
  const rule =
    known.length === 0
      ? "there is no channel"
      : `must be one of ${known.join(", ")}${meant === null ? "" : `: did you mean ${meant}?`}`;
  return [`LONGWATCH_FALLBACK_CHANNEL: ${show(name)}: is not a channel: ${rule}`];
}

/** Variables of earlier versions, and what replaces them. */
const RETIRED: Readonly<Record<string, string>> = {
  LONGWATCH_POLL_SECONDS:
    'the file that LONGWATCH_CONFIG names has schedule.poll-events, a cron expression: "*/30 * * * * *" polls every 30 seconds',
};

/** Returns a mistake for every unknown variable. Without it, a misspelt variable would silently have no effect. */
export function findUnknown(given: Given): string[] {
  const known = [...VARIABLES, ...SECRETS.map((name) => `${name}_FILE`)];
  return Object.keys(given)
    .filter((name) => /^(LONGWATCH|EDGE)_/.test(name) && !known.includes(name))
    .map((name) => {
      if (name in RETIRED) return `${name}: is no longer a setting: ${RETIRED[name]}`;
      const meant = closestName(name, known);
      // Its value is not shown: it may be a secret under a wrong name.
      return `${name}: is not a setting${meant === null ? "" : `: did you mean ${meant}?`}`;
    });
}

export function findServiceMistakes(given: Given, alerting: Alerting | null): string[] {
  const isPosted = (url: string) => /^https?:$/.test(URL.parse(url)?.protocol ?? "");
  const allowsPrivate = given["LONGWATCH_ALLOW_PRIVATE_WEBHOOKS"] === "true";
  const refused = SETTINGS.flatMap(({ env, isPosted: isChecked }) => {
    const { [env]: url = "" } = given;
    const mistakes = isChecked === true && isPosted(url) ? checkAddress(url, allowsPrivate) : [];
    return mistakes.map((mistake) => `${env}: [secret]: ${mistake}`);
  });
  const folder = given["LONGWATCH_ARCHIVE_DIR"];
  const unusable = folder === undefined ? null : findFolderMistake(path.resolve(folder));
  const archive = unusable === null ? [] : [`LONGWATCH_ARCHIVE_DIR: ${JSON.stringify(folder)}: ${unusable}`];
  if (given["LONGWATCH_PUBLIC_URL"] === undefined && alerting?.signIn != null)
    archive.push("LONGWATCH_PUBLIC_URL: not set: must be set if the configuration file has sign_in");
  return [...findIncomplete(given), ...refused, ...archive];
}

function findIncomplete(given: Given): string[] {
  const isSet = (name: string) => given[name] !== undefined || given[`${name}_FILE`] !== undefined;
  const missing = new Map<string, string>();
  for (const { env, needs = [] } of SETTINGS)
    for (const needed of isSet(env) ? needs : [])
      if (!isSet(needed) && !missing.has(needed)) missing.set(needed, env);
  return [...missing].map(([needed, name]) => `${needed}: not set: must be set when ${name} is`);
}

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
