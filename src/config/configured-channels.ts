import type { Config } from "./config.ts";

/** Returns the names of the configured channels, or null if this environment configures none. The service's may differ. */
export function configuredChannels({ file, channels, alerting }: Config): ReadonlySet<string> | null {
  const isConfigured = file !== null || channels.webhook !== null || channels.slack !== null;
  return isConfigured ? new Set(alerting.channels.map(({ name }) => name)) : null;
}
