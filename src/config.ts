import { readFileSync } from "node:fs";
import path from "node:path";
import { z } from "zod";
import { toError, UsageError } from "./errors.ts";
import { createSecret, type Secret } from "./secret.ts";

const httpUrl = z.url({ protocol: /^https?$/, error: "must be an http or https URL" });

const positiveInts = z
  .string()
  .regex(/^\s*[1-9]\d*(\s*,\s*[1-9]\d*)*\s*$/, "must be whole numbers above 0, separated by commas")
  .transform((text) => [...new Set(text.split(",").map(Number))]);

/** Every environment variable, its rule and what it is for; the README's table is read off this. */
const Environment = z.object({
  EDGE_API_URL: httpUrl.optional().meta({ description: "the platform's address" }),
  EDGE_API_KEY: z.string().min(1, "must not be empty").optional().meta({ description: "access key" }),
  EDGE_SHIELD_ZONES: positiveInts.optional().meta({ description: "shield zone ids, comma separated" }),
  LONGWATCH_DATA_DIR: z
    .string()
    .min(1)
    .default(".longwatch")
    .meta({ description: "where local state lives" }),
});

/** Variables that may also be given as NAME_FILE: the value is the file's text without its last line end. */
const SECRETS = ["EDGE_API_KEY"] as const;

export interface Config {
  readonly edge: {
    readonly url: string | null;
    readonly key: Secret | null;
    readonly zones: readonly number[];
  };
  readonly dataDir: string;
}

/**
 * The only reader of the environment. Empty variables count as unset.
 * @throws {UsageError} listing every mistake at once as variable, value and rule; a secret's value is never shown.
 */
export function parseConfig(env: NodeJS.ProcessEnv): Config {
  const mistakes: string[] = [];
  const given = readSecretFiles(env, mistakes);
  const parsed = Environment.safeParse(given);
  for (const issue of parsed.error?.issues ?? []) {
    const name = String(issue.path[0]);
    const shown = SECRETS.some((secret) => secret === name) ? "[secret]" : JSON.stringify(given[name]);
    mistakes.push(`${name}: ${shown}: ${issue.message}`);
  }
  if (!parsed.success || mistakes.length > 0) throw new UsageError(mistakes);
  const value = parsed.data;
  return Object.freeze({
    edge: {
      url: value.EDGE_API_URL ?? null,
      key: value.EDGE_API_KEY === undefined ? null : createSecret(value.EDGE_API_KEY),
      zones: value.EDGE_SHIELD_ZONES ?? [],
    },
    dataDir: path.resolve(value.LONGWATCH_DATA_DIR),
  });
}

/**
 * Address and key for a command that talks to the platform.
 * @throws {UsageError} naming the variables that are missing.
 */
export function requireEdge(config: Config): { baseUrl: string; accessKey: Secret } {
  const { url, key } = config.edge;
  const mistakes: string[] = [];
  if (url === null) mistakes.push("EDGE_API_URL: not set: must be the platform's address");
  if (key === null) mistakes.push("EDGE_API_KEY or EDGE_API_KEY_FILE: not set: must be an access key");
  if (url === null || key === null) throw new UsageError(mistakes);
  return { baseUrl: url, accessKey: key };
}

function readSecretFiles(env: NodeJS.ProcessEnv, mistakes: string[]): Record<string, string> {
  const given: Record<string, string> = {};
  for (const [name, value] of Object.entries(env)) {
    if (value !== undefined && value !== "") given[name] = value;
  }
  for (const name of SECRETS) {
    const file = given[`${name}_FILE`];
    if (file === undefined) continue;
    if (given[name] !== undefined) {
      mistakes.push(`${name}_FILE: ${JSON.stringify(file)}: must not be set together with ${name}`);
      continue;
    }
    try {
      given[name] = readFileSync(file, "utf8").replace(/\r?\n$/, "");
    } catch (thrown) {
      mistakes.push(
        `${name}_FILE: ${JSON.stringify(file)}: must be a readable file (${toError(thrown).message})`,
      );
    }
  }
  return given;
}
