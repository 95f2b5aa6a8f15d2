import { z } from "zod";
import { isObject } from "#lib/json.ts";
import { closestName } from "#lib/text.ts";
import type { Zones } from "#model/zones.ts";
import type { ConfigFile } from "./config-file-schema.ts";

interface NamedZones {
  readonly zone?: readonly (number | string)[] | undefined;
  readonly zone_labels?: Readonly<Record<string, readonly string[]>> | undefined;
}

export function toZones(entries: ConfigFile["zones"] = {}): Zones {
  return Object.fromEntries(
    Object.entries(entries).map(([id, { name, labels }]) => [
      id,
      { name: name ?? null, labels: labels ?? {} },
    ]),
  );
}

/**
 * Returns the numbers of the zones that a matcher names by number, name or label. Returns undefined if it names none,
 * which means every zone. The alerting code then works with numbers only.
 */
export function resolveZone({ zone, zone_labels: labels }: NamedZones, zones: Zones): number[] | undefined {
  const named = zone?.flatMap((one) => (typeof one === "number" ? [one] : idsNamed(one, zones)));
  const labelled = labels === undefined ? undefined : idsLabelled(labels, zones);
  if (named === undefined || labelled === undefined) return named ?? labelled;
  return named.filter((id) => labelled.includes(id));
}

function idsNamed(name: string, zones: Zones): number[] {
  return Object.entries(zones).flatMap(([id, one]) => (one.name === name ? [Number(id)] : []));
}

function idsLabelled(wanted: Readonly<Record<string, readonly string[]>>, zones: Zones): number[] {
  const isMeant = (labels: Readonly<Record<string, string>>) =>
    Object.entries(wanted).every(([name, values]) => values.includes(labels[name] ?? ""));
  return Object.entries(zones).flatMap(([id, { labels }]) => (isMeant(labels) ? [Number(id)] : []));
}

/** Reads as much as possible of `zones`, in a file that may have mistakes. */
const looseZones = z
  .record(
    z.string(),
    z
      .object({
        name: z
          .string()
          .nullish()
          .catch(null)
          .transform((name) => name ?? null),
        labels: z.record(z.string(), z.string()).catch({}).default({}),
      })
      .catch({ name: null, labels: {} }),
  )
  .catch({});
const looseMatcher = z.object({
  zone: z
    .array(z.union([z.int(), z.string()]))
    .optional()
    .catch(undefined),
  zone_labels: z.record(z.string(), z.array(z.string())).optional().catch(undefined),
});
/** The parts of the file that name zones. */
const PARTS = ["route", "links", "inhibit", "quiet_hours", "detection", "sign_in"] as const;

/** Returns the zones of a file that may have mistakes. */
export function looseZonesOf(input: unknown): Zones {
  return isObject(input) ? looseZones.parse(input["zones"] ?? {}) : {};
}

/** Returns a mistake for every matcher or destination that names a zone that is not in `zones`, and for every name given twice. */
export function findZoneMistakes(input: unknown): string[] {
  if (!isObject(input)) return [];
  const zones = looseZonesOf(input);
  const parts = PARTS.flatMap((part) => findInside(part, input[part], zones));
  const forward = isObject(input["forward"]) ? Object.entries(input["forward"]) : [];
  const destinations = forward.flatMap(([name, entry]) => {
    const { zone: named = [] } = looseMatcher.parse({ zone: isObject(entry) ? entry["zones"] : undefined });
    return findUnknown(`forward.${name}.zones`, named, zones);
  });
  return [...findNamedTwice(zones), ...parts, ...destinations];
}

function findNamedTwice(zones: Zones): string[] {
  return Object.entries(zones).flatMap(([id, { name }]) => {
    // The schema reports a key that is no number.
    if (!/^\d+$/.test(id)) return [];
    const [first] = name === null ? [] : idsNamed(name, zones);
    if (first === undefined || String(first) === id) return [];
    return [`zones.${id}.name: ${JSON.stringify(name)}: must differ from the name of zone ${first}`];
  });
}

function findInside(at: string, value: unknown, zones: Zones): string[] {
  if (Array.isArray(value)) return value.flatMap((one, index) => findInside(`${at}[${index}]`, one, zones));
  if (!isObject(value)) return [];
  const below = Object.entries(value)
    .filter(([key]) => key !== "zone" && key !== "zone_labels")
    .flatMap(([key, one]) => findInside(`${at}.${key}`, one, zones));
  return [...findIn(at, looseMatcher.parse(value), zones), ...below];
}

function findUnknown(at: string, named: readonly (number | string)[], zones: Zones): string[] {
  const known = Object.values(zones).flatMap(({ name }) => name ?? []);
  return named.flatMap((name, index) => {
    if (typeof name === "number" || known.includes(name)) return [];
    const meant = closestName(name, known);
    const rule = meant === null ? "must be a number, or a name from zones" : `did you mean ${meant}?`;
    return [`${at}[${index}]: ${JSON.stringify(name)}: is not the name of a zone: ${rule}`];
  });
}

function findIn(at: string, matcher: NamedZones, zones: Zones): string[] {
  const unknown = findUnknown(`${at}.zone`, matcher.zone ?? [], zones);
  if (unknown.length > 0 || matcher.zone_labels === undefined) return unknown;
  if (resolveZone({ zone_labels: matcher.zone_labels }, zones)?.length === 0)
    return [`${at}.zone_labels: must be labels that one zone in zones has together`];
  if (resolveZone(matcher, zones)?.length === 0)
    return [`${at}.zone: must name a zone that has the zone_labels`];
  return [];
}
