/** Zones and what is known of them. */

/** The account of the EDGE_ variables. */
export const DEFAULT_ACCOUNT = "default";

/** The configuration file's settings of a shield zone. */
interface Zone {
  /** Null if only labels are given. */
  readonly name: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** The account whose key reads the zone, also one of its labels. Left out if the file has no accounts. */
  readonly account?: string;
}

/** Zones by number. */
export type Zones = Readonly<Record<number, Zone>>;

/** Returns the account whose zone it is; the first for every other zone, and for none. */
export function findOwner<One extends { readonly zoneIds: readonly number[] }>(
  accounts: readonly [One, ...One[]],
  zoneId: number | undefined,
): One {
  return accounts.find(({ zoneIds }) => zoneId !== undefined && zoneIds.includes(zoneId)) ?? accounts[0];
}

interface ZonesOfAccount {
  readonly name: string;
  readonly zoneIds: readonly number[];
}

/** Returns the zones of the accounts of these names. */
export function zonesOfAccounts(accounts: readonly ZonesOfAccount[], names: readonly string[]): number[] {
  return accounts.flatMap(({ name, zoneIds }) => (names.includes(name) ? zoneIds : []));
}

/** Returns the zones that a key is for: its own and those that its accounts have now. Null is every zone. */
export function zonesOfKey(
  key: { readonly zoneIds: readonly number[] | null; readonly accounts: readonly string[] | null },
  accounts: readonly ZonesOfAccount[],
): readonly number[] | null {
  if (key.accounts === null) return key.zoneIds;
  return [...new Set([...(key.zoneIds ?? []), ...zonesOfAccounts(accounts, key.accounts)])];
}

/** Returns the label of an account in metrics and lists; none if there is only that of the EDGE_ variables. */
export function labelAccount(
  accounts: readonly { readonly name: string }[],
  account: string,
): { readonly account?: string } {
  return accounts.length === 1 && account === DEFAULT_ACCOUNT ? {} : { account };
}

/** A zone's name and labels in messages. Members without a value are omitted. */
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

/** Returns `zone 101 (shop)`, or `zone 101` for a zone without a name. */
export function nameZone(zoneId: number, name: string | null | undefined): string {
  return name == null ? `zone ${zoneId}` : `zone ${zoneId} (${name})`;
}

/** A zone that is polled more often, because something of it is near its threshold or has lately exceeded it. */
export interface RisingZone {
  readonly zoneId: number;
  /** Null if no recent hour was searched. */
  readonly searchedThroughMs: number | null;
  /** Stored events of the last two to three minutes: about what a search of the newest minutes reads. */
  readonly events: number;
}

/** A UTC day whose hours were proven anew, because the platform's metrics counted more events than are stored. */
export interface ProvenDay {
  /** Time at which the latest proof began, epoch ms. */
  readonly at: number;
  /** Number of proofs. */
  readonly proofs: number;
  /** The platform's counts at that time that exceeded the stored ones, by rule. */
  readonly counts: Readonly<Record<string, number>>;
}
