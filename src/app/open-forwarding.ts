import type { Config } from "#config/config.ts";
import type { Metrics } from "#faces/http/metrics.ts";
import type { JobsDeps } from "#jobs/index.ts";
import type { Clock } from "#lib/clock.ts";
import { createOpenedBlocks } from "#stages/archive/records/opened-blocks.ts";
import { openDestinations } from "#stages/delivery/sinks/destination.ts";

/** Opens the destinations of the configuration file. Null if there are none. */
export function openForwarding({
  config,
  metrics,
  clock,
}: {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly clock: Clock;
}): NonNullable<JobsDeps["forwarding"]> | null {
  const network = { allowPrivateNetworks: config.channels.allowPrivate };
  const opened = openDestinations(config.alerting.destinations, { clock, network });
  if (opened.length === 0) return null;
  return {
    destinations: new Map(opened.map((destination) => [destination.name, destination])),
    openedBlocks: createOpenedBlocks(),
    ocsf: { vendor: config.platformVendor, actions: config.alerting.actions },
    onForwarded(destination, { events, refused }) {
      metrics.forwarded.inc({ destination, result: "acknowledged" }, events);
      metrics.forwarded.inc({ destination, result: "refused" }, refused);
    },
  };
}
