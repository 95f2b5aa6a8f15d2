/** Finds the settings of the service that runs on this machine, so that a command uses the same store. */
import path from "node:path";
import { readRuntimeFile } from "#app/runtime-file.ts";
import { accountsOf, type Config, parseConfig, parseConfigElsewhere } from "#config/config.ts";
import { UsageError } from "#lib/errors.ts";
import { createSecret } from "#lib/secret.ts";

/** The configuration file that a command reads. */
interface FoundFile {
  /** Absolute. */
  readonly file: string;
  /** Whether LONGWATCH_CONFIG names the file here, or the running service uses it. */
  readonly from: "environment" | "service";
}

/**
 * Returns the environment with the configuration file of the service that runs with this data folder, unless
 * LONGWATCH_CONFIG names a file or there is no such service.
 */
export function adoptServiceFile(env: NodeJS.ProcessEnv): {
  readonly env: NodeJS.ProcessEnv;
  readonly found: FoundFile | null;
} {
  const { LONGWATCH_CONFIG: named = "", LONGWATCH_DATA_DIR } = env;
  if (named !== "") return { env, found: { file: path.resolve(named), from: "environment" } };
  // Only the data folder is needed, and other settings may be wrong.
  const { dataDir } = parseConfig(LONGWATCH_DATA_DIR === undefined ? {} : { LONGWATCH_DATA_DIR });
  const file = readRuntimeFile(dataDir)?.configFile ?? null;
  return file === null
    ? { env, found: null }
    : { env: { ...env, LONGWATCH_CONFIG: file }, found: { file, from: "service" } };
}

/** The settings that change answers. Left out are secrets, the platform's address, and paths, which may be relative to the service's folder. */
const ADOPTED = [
  "EDGE_SHIELD_ZONES",
  "LONGWATCH_ALLOW_PRIVATE_WEBHOOKS",
  "LONGWATCH_IP_DAYS",
  "LONGWATCH_PLATFORM_VENDOR",
  "LONGWATCH_PUBLIC_URL",
  "LONGWATCH_RAW_DAYS",
  "LONGWATCH_RETENTION_DAYS",
  "LONGWATCH_ROLL_UP_DAYS",
  "LONGWATCH_SPIKE_Z",
];

/**
 * Returns the settings of this environment. Those that it does not set are the running service's, with its configuration
 * file, so that both answer the same.
 */
export function parseConfigOfService(own: NodeJS.ProcessEnv): Config {
  const { env, found } = adoptServiceFile(own);
  const config = parseConfig(own);
  if (found?.from === "environment") return config;
  const { settings = {}, consoleUrl = null } = readRuntimeFile(config.dataDir) ?? {};
  // A service without a public address may know its own.
  const publicUrl = consoleUrl ?? settings["LONGWATCH_PUBLIC_URL"] ?? null;
  const offered: typeof settings = { ...settings, LONGWATCH_PUBLIC_URL: publicUrl };
  const adopted = ADOPTED.flatMap((name) => {
    const value = offered[name] ?? "";
    return value === "" || (own[name] ?? "") !== "" ? [] : [[name, value] as const];
  });
  if (found === null && adopted.length === 0) return config;
  try {
    return parseConfigElsewhere({ ...env, ...Object.fromEntries(adopted) });
  } catch (thrown) {
    // The service uses the file as it was when it last was right. A mistake in it since then stops no person.
    if (thrown instanceof UsageError) return config;
    throw thrown;
  }
}

/** Returns the configuration. If no platform is configured, the emulator of the running service replaces the platform. */
export function useRunningEmulator(config: Config): Config {
  const emulator = accountsOf(config).length === 0 ? readRuntimeFile(config.dataDir)?.emulator : null;
  if (emulator === null || emulator === undefined) return config;
  const { url, accessKey, requestsPerSecond, zones } = emulator;
  return { ...config, edge: { ...config.edge, url, key: createSecret(accessKey), requestsPerSecond, zones } };
}
