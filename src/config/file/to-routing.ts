/** Reads the routing tree of the file. */

import {
  DEFAULT_TIMING,
  type Route,
  type Routing,
  routeToAll,
  type Timing,
} from "#alerts/rules/routing/routing.ts";
import { isObject } from "#lib/json.ts";
import { closestName } from "#lib/text.ts";
import { FEW_ADDRESSES } from "#model/ip-address.ts";
import { WEEKDAYS } from "#model/kinds.ts";
import type { SubjectMatchers } from "#model/subject.ts";
import type { Zones } from "#model/zones.ts";
import { type ConfigFile, channelName, configFile, link, type RouteEntry } from "./config-file-schema.ts";
import { listPlaces, type Place, toPath } from "./describe-issues.ts";
import { findZoneMistakes, resolveZone } from "./resolve-zones.ts";

/** Returns the file's routes with all settings filled in. A route inherits missing settings from the route above it. */
export function toRouting(file: ConfigFile, channels: readonly string[], zones: Zones): Routing {
  const { route, inhibit = [], quiet_hours: quiet = [], links = [] } = file;
  const toMatchers: ToMatchers = (entry = {}) => {
    const { zone: _, zone_labels: __, account: ___, ...rest } = entry;
    const zone = resolveZone(entry, zones);
    return zone === undefined ? rest : { ...rest, zone };
  };
  return {
    channels,
    root:
      route === undefined ? routeToAll(channels).root : toRoute(route, channels, DEFAULT_TIMING, toMatchers),
    inhibitions: inhibit.map(({ source, target, equal = ["zone"] }) => ({
      source: toMatchers(source),
      target: toMatchers(target),
      equal,
    })),
    quietHours: quiet.map((hours) => ({
      timeZone: hours.time_zone,
      days: hours.days ?? WEEKDAYS,
      fromMinute: hours.from,
      toMinute: hours.to,
      channels: hours.channels ?? null,
      matchers: toMatchers(hours.matchers),
      critical: hours.critical ?? "tell",
    })),
    links: links.map(({ title, url, matchers }) => ({ title, url, matchers: toMatchers(matchers) })),
    fewAddresses: file.detection?.notify_from_addresses ?? FEW_ADDRESSES,
    ...(file.detection?.verdict && { verdict: file.detection.verdict }),
    ...(Object.keys(zones).length === 0 ? {} : { zones }),
  };
}

/** Returns matchers in which zones are numbers only. */
type ToMatchers = (entry: RouteEntry["matchers"]) => SubjectMatchers;

function toRoute(
  entry: RouteEntry,
  above: readonly string[],
  timingAbove: Timing,
  toMatchers: ToMatchers,
): Route {
  const channels = entry.channels ?? above;
  const timing: Timing = {
    groupWaitMs: entry.group_wait ?? timingAbove.groupWaitMs,
    groupIntervalMs: entry.group_interval ?? timingAbove.groupIntervalMs,
    repeatIntervalMs: entry.repeat_interval ?? timingAbove.repeatIntervalMs,
  };
  const routes = (entry.routes ?? []).map((child) => toRoute(child, channels, timing, toMatchers));
  return {
    matchers: toMatchers(entry.matchers),
    channels,
    timing,
    continue: entry.continue ?? false,
    routes,
  };
}

/**
 * Returns the mistakes between the parts of a file. Mistakes inside a part are skipped, because the schema lists them.
 * `channels` is null if the file's channels cannot be read.
 */
export function findMismatches(
  input: unknown,
  channels: readonly string[] | null,
  { mostLinks, zones }: { readonly mostLinks: number; readonly zones: Zones },
): string[] {
  const places = listPlaces(configFile, input);
  const unknown = places.flatMap(({ path, schema, value }) => {
    if (schema !== channelName || typeof value !== "string") return [];
    if (channels === null || value === "" || channels.includes(value)) return [];
    const meant = closestName(value, channels);
    const rule = meant === null ? `must be one of ${channels.join(", ")}` : `did you mean ${meant}?`;
    return [`${toPath(path)}: ${JSON.stringify(value)}: is not a channel: ${rule}`];
  });
  const needless = places
    .filter(
      ({ path: [part, key, more] }) =>
        part === "route" && more === undefined && (key === "matchers" || key === "continue"),
    )
    .map(({ path }) => `${toPath(path)}: must be left out: the first route matches every alert`);
  return [...unknown, ...needless, ...findZoneMistakes(places, zones), ...findUnseenLinks(places, mostLinks)];
}

/** Returns a mistake for each link that no message would show, because enough links without matchers come before it. */
function findUnseenLinks(places: readonly Place[], most: number): string[] {
  const links = places.flatMap(({ schema, value }) => (schema === link && isObject(value) ? [value] : []));
  const isForAll = ({ matchers = {} }: (typeof links)[number]) =>
    isObject(matchers) && Object.keys(matchers).length === 0;
  return links.flatMap(({ title }, index) => {
    if (links.slice(0, index).filter(isForAll).length < most) return [];
    const rule = `must come before ${most} links without matchers: a message shows ${most}`;
    return [`links[${index}]: ${JSON.stringify(title ?? "")}: ${rule}`];
  });
}
