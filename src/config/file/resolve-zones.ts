import { z } from "zod";
import { isObject } from "#lib/json.ts";
import { closestName } from "#lib/text.ts";
import type { Zones } from "#model/zones.ts";
import type { ConfigFile } from "./config-file-schema.ts";
import { type Place, toPath } from "./describe-issues.ts";
import { zones as zonesEntry } from "./entry-fields.ts";

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

/** Returns the zones of a file that may have mistakes. */
export function looseZonesOf(input: unknown): Zones {
  const given = isObject(input) && isObject(input["zones"]) ? input["zones"] : {};
  const entries = Object.entries(given).map(([id, zone]) => {
    const { name, labels } = isObject(zone) ? zone : {};
    const isRight = isObject(labels) && Object.values(labels).every((label) => typeof label === "string");
    return [id, { name: typeof name === "string" ? name : null, labels: isRight ? labels : {} }];
  });
  return Object.fromEntries(entries) as Zones;
}

/** Returns a mistake for every matcher or destination that names a zone that is not in `zones`, and for every name given twice. */
export function findZoneMistakes(places: readonly Place[], zones: Zones): string[] {
  const named = places.flatMap((place) => [...findUnknown(place, zones), ...findUnmatched(place, zones)]);
  return [...findNamedTwice(zones), ...named];
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

function findUnknown({ path, schema, value }: Place, zones: Zones): string[] {
  if (schema !== zonesEntry || !Array.isArray(value)) return [];
  const known = Object.values(zones).flatMap(({ name }) => name ?? []);
  return value.flatMap((name: unknown, index) => {
    if (typeof name !== "string" || known.includes(name)) return [];
    const meant = closestName(name, known);
    const rule = meant === null ? "must be a number, or a name from zones" : `did you mean ${meant}?`;
    return [`${toPath([...path, index])}: ${JSON.stringify(name)}: is not the name of a zone: ${rule}`];
  });
}

const matcher = z.object({
  zone: zonesEntry.optional(),
  zone_labels: z.record(z.string(), z.array(z.string())),
});

/** Returns a mistake if no zone has the labels of a matcher, or if no zone that it names has them. */
function findUnmatched({ path, value }: Place, zones: Zones): string[] {
  const { data } = matcher.safeParse(value);
  if (
    data === undefined ||
    data.zone?.some((one) => resolveZone({ zone: [one] }, zones)?.length === 0) === true
  )
    return [];
  if (resolveZone({ zone_labels: data.zone_labels }, zones)?.length === 0)
    return [`${toPath(path)}.zone_labels: must be labels that one zone in zones has together`];
  return resolveZone(data, zones)?.length === 0
    ? [`${toPath(path)}.zone: must name a zone that has the zone_labels`]
    : [];
}
