import { z } from "zod";
import { isObject } from "#lib/json.ts";
import { closestName } from "#lib/text.ts";
import { DEFAULT_ACCOUNT, type Zones } from "#model/zones.ts";
import type { Account } from "./accounts-entry.ts";
import { type Place, toPath } from "./describe-issues.ts";
import { accounts as accountsEntry, zones as zonesEntry } from "./entry-fields.ts";

interface NamedZones {
  readonly zone?: readonly (number | string)[] | undefined;
  readonly zone_labels?: Readonly<Record<string, readonly string[]>> | undefined;
  readonly account?: readonly string[] | undefined;
}

/**
 * Returns the numbers of the zones that a matcher names by number, name, label or account. Returns undefined if it names
 * none, which means every zone. The alerting code then works with numbers only.
 */
export function resolveZone(
  { zone, zone_labels: labels, account }: NamedZones,
  zones: Zones,
): number[] | undefined {
  const given = [
    zone?.flatMap((one) => (typeof one === "number" ? [one] : idsNamed(one, zones))),
    labels && idsLabelled(labels, zones),
    account && idsOf(account, zones),
  ].filter((ids) => ids !== undefined);
  const [first, ...others] = given;
  return first?.filter((id) => others.every((ids) => ids.includes(id)));
}

function idsOf(accounts: readonly string[], zones: Zones): number[] {
  return Object.entries(zones).flatMap(([id, { account }]) =>
    account !== undefined && accounts.includes(account) ? [Number(id)] : [],
  );
}

function idsNamed(name: string, zones: Zones): number[] {
  return Object.entries(zones).flatMap(([id, one]) => (one.name === name ? [Number(id)] : []));
}

function idsLabelled(wanted: Readonly<Record<string, readonly string[]>>, zones: Zones): number[] {
  const isMeant = (labels: Readonly<Record<string, string>>) =>
    Object.entries(wanted).every(([name, values]) => values.includes(labels[name] ?? ""));
  return Object.entries(zones).flatMap(([id, { labels }]) => (isMeant(labels) ? [Number(id)] : []));
}

/**
 * Returns the zones of a file that may have mistakes. If it has accounts, each zone of an account has the account's name
 * also as a label, so that messages, lists and metrics show it. `others` are the zones of the EDGE_ variables.
 */
export function looseZonesOf(input: unknown, accounts: readonly Account[], others: readonly number[]): Zones {
  const given = isObject(input) && isObject(input["zones"]) ? input["zones"] : {};
  const entries = Object.entries(given).map(([id, zone]) => {
    const { name, labels } = isObject(zone) ? zone : {};
    const isRight = isObject(labels) && Object.values(labels).every((label) => typeof label === "string");
    return [id, { name: typeof name === "string" ? name : null, labels: isRight ? labels : {} }];
  });
  const zones = Object.fromEntries(entries) as Zones;
  if (accounts.length === 0) return zones;
  const owned = [{ name: DEFAULT_ACCOUNT, zoneIds: others }, ...accounts].flatMap(
    ({ name: account, zoneIds }) =>
      zoneIds.map((id) => {
        const { name = null, labels = {} } = zones[id] ?? {};
        return [id, { name, labels: { ...labels, account }, account }];
      }),
  );
  return { ...zones, ...Object.fromEntries(owned) };
}

/** Returns a mistake for every matcher or destination that names a zone that is not in `zones`, and for every name given twice. */
export function findZoneMistakes(places: readonly Place[], zones: Zones): string[] {
  const named = places.flatMap((place) => [
    ...findUnknown(place, zones),
    ...findUnknownAccounts(place, zones),
    ...findOwnAccountLabel(place, zones),
    ...findUnmatched(place, zones),
  ]);
  return [...findNamedTwice(zones), ...named];
}

function findUnknownAccounts({ path, schema, value }: Place, zones: Zones): string[] {
  if (schema !== accountsEntry || !Array.isArray(value)) return [];
  const known = [...new Set(Object.values(zones).flatMap(({ account }) => account ?? []))];
  return value.flatMap((name: unknown, index) =>
    typeof name !== "string" || known.includes(name)
      ? []
      : [
          `${toPath([...path, index])}: ${JSON.stringify(name)}: is not an account: ${known.length === 0 ? "there is none in accounts" : `must be one of ${known.join(", ")}`}`,
        ],
  );
}

function findOwnAccountLabel({ path }: Place, zones: Zones): string[] {
  const [part, id, member, label, more] = path;
  const isLabel = part === "zones" && member === "labels" && label === "account" && more === undefined;
  if (!isLabel || zones[Number(id)]?.account === undefined) return [];
  return [`${toPath(path)}: must be left out: the account's name is this label`];
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
  zone_labels: z.record(z.string(), z.array(z.string())).optional(),
  account: accountsEntry.optional(),
});

/** Returns a mistake if no zone has the labels of a matcher, or if no zone that it names has them, or its account. */
function findUnmatched({ path, value }: Place, zones: Zones): string[] {
  const { zone, zone_labels, account } = matcher.safeParse(value).data ?? {};
  const matchesNone = (named: NamedZones) => resolveZone(named, zones)?.length === 0;
  if (zone?.some((one) => matchesNone({ zone: [one] })) || matchesNone({ account })) return [];
  if (matchesNone({ zone_labels }))
    return [`${toPath(path)}.zone_labels: must be labels that one zone in zones has together`];
  if (matchesNone({ zone, zone_labels }))
    return [`${toPath(path)}.zone: must name a zone that has the zone_labels`];
  return matchesNone({ zone, zone_labels, account })
    ? [`${toPath(path)}.account: must have a zone that the other matchers name`]
    : [];
}
