/** What the operations see of the running service. */

import type { Config } from "#config/config.ts";
import { readDiskSpace } from "#lib/disk.ts";
import type { ServiceView } from "#operations/service-life.ts";
import { describeBucket } from "#store/bucket/bucket.ts";
import { findCluster } from "#store/embedded/place-cluster.ts";
import { toRequestBudget } from "./open-request-gate.ts";

type Viewed = Pick<Config, "archive" | "databaseUrl" | "dataDir" | "pollEveryMs" | "retention" | "settings">;

/** Returns what operations show of the settings. The rate is that of the platform, which the emulator has another of. */
export function viewSettings(
  { archive, databaseUrl, dataDir, pollEveryMs, retention, settings }: Viewed,
  requestsPerSecond: number,
) {
  const { bucket, folder, hotDays, isWritten } = archive;
  return {
    archive: { folder, bucket: bucket === null ? null : describeBucket(bucket), isWritten, hotDays },
    pollEveryMs,
    readDisk: () => (databaseUrl === null ? readDiskSpace(findCluster(dataDir)) : null),
    requestBudget: toRequestBudget(requestsPerSecond),
    retention,
    settings,
  };
}

/** Returns the service as a process sees it that only has its settings: a command. */
export function viewService(config: Config): ServiceView {
  return {
    ...viewSettings(config, config.edge.requestsPerSecond),
    alerting: () => config.alerting,
    configuredChannels: () => configuredChannels(config),
    notifiers: new Map(),
    zoneIds: config.edge.zones,
    readJobRuns: async () => [],
  };
}

/** Returns the names of the configured channels, or null if this environment configures none. The service's may differ. */
function configuredChannels({ file, channels, alerting }: Config): ReadonlySet<string> | null {
  const isConfigured = file !== null || channels.webhook !== null || channels.slack !== null;
  return isConfigured ? new Set(alerting.channels.map(({ name }) => name)) : null;
}
