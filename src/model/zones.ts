/** What the configuration file says of a shield zone. */
interface Zone {
  /** Null where it gives labels alone. */
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
}

/** By the zone's number. */
export type Zones = Readonly<Record<number, Zone>>;

/** A zone's name and labels as messages hold them; nothing where there is nothing to say. */
export interface ZoneFacts {
  readonly zoneName?: string | undefined;
  readonly zoneLabels?: Readonly<Record<string, string>> | undefined;
}

export function zoneFactsOf(zones: Zones | undefined, zoneId: number | null): ZoneFacts {
  const zone = zoneId === null ? undefined : zones?.[zoneId];
  if (zone === undefined) return {};
  return {
    ...(zone.name === null ? {} : { zoneName: zone.name }),
    ...(Object.keys(zone.labels).length === 0 ? {} : { zoneLabels: zone.labels }),
  };
}

/** `zone 101 (shop)`, or `zone 101` for a zone without a name. */
export function nameZone(zoneId: number, name: string | null | undefined): string {
  return name == null ? `zone ${zoneId}` : `zone ${zoneId} (${name})`;
}
