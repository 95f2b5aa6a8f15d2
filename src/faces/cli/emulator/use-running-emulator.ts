import { readRuntimeFile } from "#app/runtime-file.ts";
import type { Config } from "#config/config.ts";
import { createSecret } from "#lib/secret.ts";

/** Returns the configuration. If no platform is configured, the emulator of the running service replaces the platform. */
export function useRunningEmulator(config: Config): Config {
  const emulator = config.edge.url === null ? readRuntimeFile(config.dataDir)?.emulator : null;
  if (emulator === null || emulator === undefined) return config;
  const { url, accessKey, requestsPerSecond } = emulator;
  return { ...config, edge: { ...config.edge, url, key: createSecret(accessKey), requestsPerSecond } };
}
