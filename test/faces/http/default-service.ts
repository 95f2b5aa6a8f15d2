import { defaultAlerting } from "#config/file/config-file.ts";
import type { ServiceView } from "#operations/service-life.ts";

/** A service with the default settings and no channel. */
export const SERVICE: ServiceView = {
  alerting: () => defaultAlerting({ channels: [], publicUrl: null, spikeZ: 3.5 }),
  configuredChannels: () => new Set(),
  zoneIds: [101, 102],
  notifiers: new Map(),
  settings: [{ name: "EDGE_API_KEY", value: "[secret]", isSet: true }],
  retention: { rawDays: 90, ipDays: 90, eventDays: 400, rollUpDays: 800 },
  accounts: [
    {
      name: "default",
      host: "platform.example",
      zoneIds: [],
      budget: { name: "edge", ratePerSecond: 10, burst: 10 },
    },
  ],
  pollEveryMs: 30_000,
  readDisk: () => null,
  archive: { folder: "/var/lib/longwatch/archive", bucket: null, isWritten: true, hotDays: 7 },
  readJobRuns: async () => [
    { job: "poll-events", runs: { done: 2, retry: 1 }, meanSeconds: 0.5, lastSuccessAt: 1 },
  ],
};
