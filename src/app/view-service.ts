/** What the operations see of the running service. */

import { accountsOf, type Config, zonesOf } from "#config/config.ts";
import type { Account } from "#config/file/accounts-entry.ts";
import { readDiskSpace } from "#lib/disk.ts";
import { DEFAULT_ACCOUNT } from "#model/zones.ts";
import type { ServiceView } from "#operations/service-life.ts";
import { describeBucket } from "#store/bucket/bucket.ts";
import { findCluster } from "#store/embedded/place-cluster.ts";
import { toRequestBudget } from "./open-accounts.ts";

type Viewed = Pick<Config, "archive" | "databaseUrl" | "dataDir" | "pollEveryMs" | "retention" | "settings">;

/** Returns what operations show of the settings. The accounts are those of the platform: the emulator has one of its own. */
export function viewSettings(
  { archive, databaseUrl, dataDir, pollEveryMs, retention, settings }: Viewed,
  accounts: readonly (Pick<Account, "name" | "zoneIds" | "requestsPerSecond"> & {
    readonly url: string | null;
  })[],
) {
  const { bucket, folder, hotDays, isWritten } = archive;
  return {
    archive: { folder, bucket: bucket === null ? null : describeBucket(bucket), isWritten, hotDays },
    pollEveryMs,
    readDisk: () => (databaseUrl === null ? readDiskSpace(findCluster(dataDir)) : null),
    accounts: accounts.map((account) => {
      const { name, url, zoneIds } = account;
      return {
        name,
        host: url === null ? null : new URL(url).host,
        zoneIds,
        budget: toRequestBudget(account),
      };
    }),
    retention,
    settings,
  };
}

/**
 * Returns the service as a process sees it that only has its settings: a command. The variables of the account `default` may be
 * set where the service runs and not here.
 */
export function viewService(config: Config, accounts: readonly Account[] = accountsOf(config)): ServiceView {
  const { url, zones: zoneIds, requestsPerSecond } = config.edge;
  const viewed =
    accounts.length > 0 ? accounts : [{ name: DEFAULT_ACCOUNT, url, zoneIds, requestsPerSecond }];
  return {
    ...viewSettings(config, viewed),
    alerting: () => config.alerting,
    configuredChannels: () => configuredChannels(config),
    notifiers: new Map(),
    zoneIds: zonesOf(config),
    readJobRuns: async () => [],
  };
}

/** Returns the names of the configured channels, or null if this environment configures none. The service's may differ. */
function configuredChannels({ file, channels, alerting }: Config): ReadonlySet<string> | null {
  const isConfigured = file !== null || channels.webhook !== null || channels.slack !== null;
  return isConfigured ? new Set(alerting.channels.map(({ name }) => name)) : null;
}
