/** Reads the routing tree of the file. */
import { z } from "zod";
import {
  DEFAULT_TIMING,
  type Route,
  type Routing,
  routeToAll,
  type Timing,
} from "#alerts/rules/routing/routing.ts";
import { closestName } from "#lib/text.ts";
import { FEW_ADDRESSES } from "#model/ip-address.ts";
import { WEEKDAYS } from "#model/kinds.ts";
import type { SubjectMatchers } from "#model/subject.ts";
import type { ConfigFile, RouteEntry } from "./config-file-schema.ts";
import { findZoneMistakes, resolveZone, toZones } from "./resolve-zones.ts";

/** Returns the file's routes with all settings filled in. A route inherits missing settings from the route above it. */
export function toRouting(file: ConfigFile, channels: readonly string[]): Routing {
  const { route, inhibit = [], quiet_hours: quiet = [], links = [] } = file;
  const zones = toZones(file.zones);
  const toMatchers: ToMatchers = (entry = {}) => {
    const { zone: _, zone_labels: __, ...rest } = entry;
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
  mostLinks: number,
): string[] {
  const file = looseFile.parse(input);
  const mistakes: string[] = [];
  const check = (at: string, names: readonly string[]) => {
    for (const [index, name] of names.entries()) {
      if (channels === null || name === "" || channels.includes(name)) continue;
      const meant = closestName(name, channels);
      const rule = meant === null ? `must be one of ${channels.join(", ")}` : `did you mean ${meant}?`;
      mistakes.push(`${at}.channels[${index}]: ${JSON.stringify(name)}: is not a channel: ${rule}`);
    }
  };
  const walk = (at: string, entry: LooseRoute) => {
    check(at, entry.channels);
    for (const [index, child] of entry.routes.entries()) walk(`${at}.routes[${index}]`, child);
  };
  walk("route", file.route);
  for (const key of ["matchers", "continue"] as const) {
    if (file.route[key] !== undefined)
      mistakes.push(`route.${key}: must be left out: the first route matches every alert`);
  }
  for (const [index, hours] of file.quiet_hours.entries()) {
    check(`quiet_hours[${index}]`, hours.channels);
    if (hours.from !== "" && hours.from === hours.to)
      mistakes.push(`quiet_hours[${index}].to: must not be the same as from`);
  }
  check("digest", file.digest.channels);
  mistakes.push(...findZoneMistakes(input));
  return [...mistakes, ...findUnseenLinks(file, mostLinks)];
}

/** Returns a mistake for each link that no message would show, because enough links without matchers come before it. */
function findUnseenLinks({ links }: z.output<typeof looseFile>, most: number): string[] {
  const isForAll = ({ matchers }: (typeof links)[number]) => Object.keys(matchers).length === 0;
  return links.flatMap(({ title }, index) => {
    if (links.slice(0, index).filter(isForAll).length < most) return [];
    const rule = `must come before ${most} links without matchers: a message shows ${most}`;
    return [`links[${index}]: ${JSON.stringify(title)}: ${rule}`];
  });
}

/** Replaces a value that is no text by an empty text, so that the indexes of the other values stay the same. */
const text = z.string().catch("");
const texts = z.array(text).catch([]);
const object = z.record(z.string(), z.unknown());

interface LooseRoute {
  readonly channels: readonly string[];
  readonly matchers?: unknown;
  readonly continue?: unknown;
  readonly routes: readonly LooseRoute[];
}
const NO_ROUTE: LooseRoute = { channels: [], routes: [] };
const route: z.ZodType<LooseRoute> = z
  .object({
    channels: texts,
    matchers: z.unknown().optional(),
    continue: z.unknown().optional(),
    get routes() {
      return z.array(route).catch([]);
    },
  })
  .catch(NO_ROUTE as never);

/** The parts of a configuration file that refer to each other. Never fails, even if the file has mistakes elsewhere. */
const looseFile = z
  .object({
    channels: object.catch({}),
    route,
    quiet_hours: z
      .array(z.object({ channels: texts, from: text, to: text }).catch({ channels: [], from: "", to: "" }))
      .catch([]),
    digest: z.object({ channels: texts }).catch({ channels: [] }),
    links: z
      .array(
        z
          .object({ title: text, matchers: object.default({}).catch({ wrong: true }) })
          .catch({ title: "", matchers: { wrong: true } }),
      )
      .catch([]),
  })
  .catch({ channels: {}, route: NO_ROUTE, quiet_hours: [], digest: { channels: [] }, links: [] });
