/** Who calls, and what the caller may do. */

import { maskText } from "#archive/rules/mask.ts";
import type { Role, Scope } from "#model/kinds.ts";
import { scopesOf } from "#model/roles.ts";

/** The holder of a valid key with the key's rights, or a person who signed in at the issuer with their own. */
export interface Caller {
  /** The public part of the key; the id of a person; `LOCAL` for a person at the command line of the service's machine. */
  readonly keyId: string;
  readonly name: string;
  readonly roles: readonly Role[];
  readonly scopes: ReadonlySet<Scope>;
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  /** Sees no raw record, and addresses only masked. */
  readonly masked: boolean;
}

/**
 * Returns the holder of this key; null if the key is unknown, expired or revoked. A client cannot tell the three apart.
 */
export type Authenticate = (accessKey: string) => Promise<Caller | null>;

/** Returns whether the caller may see the zone, for routes that read the zone from their body. */
export function maySeeZone({ zoneIds }: Pick<Caller, "zoneIds">, zoneId: number): boolean {
  return zoneIds === null || zoneIds.includes(zoneId);
}

/** Returns whether the caller may see a thing of these zones, null being every zone. */
export function maySeeSome(caller: Pick<Caller, "zoneIds">, zoneIds: readonly number[] | null): boolean {
  return zoneIds === null || zoneIds.some((zoneId) => maySeeZone(caller, zoneId));
}

/** Returns whether the caller may change a thing of these zones, null being every zone. */
export function maySeeAll(
  { zoneIds: own }: Pick<Caller, "zoneIds">,
  zoneIds: readonly number[] | null,
): boolean {
  return own === null || zoneIds?.every((zoneId) => own.includes(zoneId)) === true;
}

/** Returns those of the zones that the caller may see, because a caller learns of no other zones. */
export function pickSeen(caller: Pick<Caller, "zoneIds">, zoneIds: readonly number[]): number[] {
  return zoneIds.filter((zoneId) => maySeeZone(caller, zoneId));
}

/** No key has this id: those of keys are hexadecimal. */
const LOCAL = "local";

/** Begins the id of a person, which is made of issuer and subject. */
export const PERSON_PREFIX = "person-";

/** Returns the caller of the command line, who reads the database directly and so may do everything. */
export function localCaller(name: string): Caller {
  return { keyId: LOCAL, name, roles: ["admin"], scopes: scopesOf(["admin"]), zoneIds: null, masked: false };
}

/** Returns the actor of an audit entry. An entry outlives every erasure, so an address in the name is masked. */
export function actorOf(caller: Caller | null): string {
  if (caller === null) return "nobody";
  const { keyId } = caller;
  const name = maskText(caller.name);
  if (keyId === LOCAL) return name;
  return keyId.startsWith(PERSON_PREFIX)
    ? `person ${keyId.slice(PERSON_PREFIX.length)} (${name})`
    : `key ${keyId} (${name})`;
}
