import path from "node:path";
import { readRuntimeFile } from "#app/runtime-file.ts";
import { parseConfig } from "#config/config.ts";

/** The configuration file that a command reads. */
export interface FoundFile {
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
