/** Opens channels and destinations. */

import { createOpenedBlocks } from "#archive/rules/records/find-records.ts";
import { readStored } from "#archive/search/read-records.ts";
import type { SearchDeps } from "#archive/search/searching.ts";
import type { Config } from "#config/config.ts";
import type { Alerting } from "#config/file/config-file.ts";
import type { Notifier } from "#delivery/receivers/channel-definition.ts";
import { openNotifier } from "#delivery/receivers/channels/registry.ts";
import type { TerminalStream } from "#delivery/receivers/channels/terminal/terminal.ts";
import { openDestinations } from "#delivery/receivers/sinks/destination.ts";
import { lowestFloor, nameSettings, sensitivityOf } from "#detection/rules/detection-settings.ts";
import type { Metrics } from "#faces/http/metrics.ts";
import type { JobContext } from "#jobs/context.ts";
import type { JobsDeps } from "#jobs/index.ts";
import { UsageError } from "#lib/errors.ts";
import { isObject } from "#lib/json.ts";
import type { Secret } from "#lib/secret.ts";
import { measureNotifier } from "./measure.ts";

interface AlertingParts extends Pick<JobContext, "clock" | "log"> {
  readonly config: Pick<Config, "alerting" | "rereadAlerting" | "channels" | "consoleUrl">;
  /** Where this process serves the console, once it does. */
  readonly httpUrl: () => string | null;
  readonly terminal: TerminalStream;
  readonly metrics: Metrics;
}

export type OpenAlerting = ReturnType<typeof openAlerting>;

/**
 * Every part of the file, and the name that the file has for a part that only a start applies. Null: a reload puts it in
 * place.
 */
const STARTED: Readonly<Record<keyof Alerting, string | null>> = {
  accounts: "accounts",
  channels: null,
  destinations: "forward",
  routing: null,
  detection: null,
  conditions: null,
  actions: "actions",
  signIn: null,
  digestChannels: null,
  secretFiles: null,
  schedule: "schedule",
};

/**
 * Channels, routes and detection as they are now. `reload` reads the configuration file again and puts all of it in
 * place at once; a file with a mistake changes nothing, and every mistake is logged.
 */
export function openAlerting(parts: AlertingParts) {
  const { config, log } = parts;
  let alerting = config.alerting;
  // Holders of this map always see the current channels, because a reload replaces its content.
  const notifiers = new Map(openAll(alerting, parts));
  if (config.consoleUrl === null && alerting.channels.some(({ kind }) => kind !== "terminal"))
    log.warn({ setting: "LONGWATCH_PUBLIC_URL" }, "messages left without a link to the console");
  return {
    notifiers: notifiers as ReadonlyMap<string, Notifier>,
    current: () => alerting,
    routing: () => alerting.routing,
    sensitivity: (zoneId: number, ruleId: string) => sensitivityOf(alerting.detection, zoneId, ruleId),
    lowestFloor: () => lowestFloor(alerting.detection),
    settingsOf: (known: string) => nameSettings(alerting.detection, known),
    sourceMode: () => alerting.detection.sources,
    verifiesCrawlers: () => alerting.detection.verifyCrawlers,
    knownSources: () => alerting.detection.knownSources,
    conditions: () => alerting.conditions,
    reload(): void {
      try {
        const next = config.rereadAlerting();
        const opened = openAll(next, parts);
        const removed = [...notifiers.keys()].filter((name) => !opened.some(([one]) => one === name));
        notifiers.clear();
        for (const [name, notifier] of opened) notifiers.set(name, notifier);
        alerting = next;
        parts.metrics.configReloaded("taken");
        log.info({ channels: [...notifiers.keys()] }, "configuration file reloaded");
        const waiting = findWaiting(config.alerting, next);
        if (waiting.length > 0) log.warn({ parts: waiting }, "parts changed that the next start applies");
        // Their receivers are no longer known, so nobody can send them the end of an alert.
        if (removed.length > 0)
          log.warn({ channels: removed }, "channels removed; open alerts stay open there");
      } catch (thrown) {
        if (!(thrown instanceof UsageError)) throw thrown;
        const { mistakes } = thrown;
        parts.metrics.configReloaded("refused");
        for (const mistake of mistakes) log.error({ mistake }, "configuration file refused");
        log.error({ mistakes: mistakes.length }, "previous configuration kept");
      }
    },
  };
}

/** Returns the parts of the file that differ from those of the start and that a reload does not put in place. */
function findWaiting(started: Alerting, next: Alerting): string[] {
  return Object.entries(STARTED).flatMap(([key, part]) => {
    const name = key as keyof Alerting;
    return part === null || toComparable(started[name]) === toComparable(next[name]) ? [] : [part];
  });
}

/** Returns a text that also differs if only a secret does. It must not be shown. */
function toComparable(value: unknown): string {
  return JSON.stringify(value, function (this: Record<string, unknown>, key, shown: unknown) {
    const raw = this[key];
    return isObject(raw) && typeof raw["reveal"] === "function" ? (raw as unknown as Secret).reveal() : shown;
  });
}

function openAll(
  { channels }: Alerting,
  { config, terminal, clock, metrics, httpUrl }: AlertingParts,
): [string, Notifier][] {
  const network = { allowPrivateNetworks: config.channels.allowPrivate };
  const localUrl = () => (config.consoleUrl === null ? httpUrl() : null);
  return channels.map((channel) => [
    channel.name,
    measureNotifier(openNotifier(channel, { terminal, localUrl, clock, network }), metrics),
  ]);
}

interface ForwardingParts extends SearchDeps, Pick<AlertingParts, "metrics" | "clock"> {
  readonly config: Config;
}

/** Opens the destinations of the configuration file. Null if there are none. */
export function openForwarding({
  config,
  metrics,
  clock,
  ...reading
}: ForwardingParts): NonNullable<JobsDeps["forwarding"]> | null {
  const network = { allowPrivateNetworks: config.channels.allowPrivate };
  const opened = openDestinations(config.alerting.destinations, { clock, network });
  if (opened.length === 0) return null;
  const deps = { ...reading, openedBlocks: createOpenedBlocks() };
  return {
    destinations: new Map(opened.map((destination) => [destination.name, destination])),
    readStored: (zoneId, page, signal) => readStored(deps, zoneId, page, signal),
    ocsf: { vendor: config.platformVendor, actions: config.alerting.actions },
    onForwarded(destination, { events, refused }) {
      metrics.forwarded.inc({ destination, result: "acknowledged" }, events);
      metrics.forwarded.inc({ destination, result: "refused" }, refused);
    },
  };
}
