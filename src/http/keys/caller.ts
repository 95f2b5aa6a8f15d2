import { maskText } from "../../archive/mask/mask-text.ts";
import type { Role, Scope } from "./roles.ts";

/** Who asks: what a valid key says about its holder. */
export interface Caller {
  /** The public part of the key. */
  readonly keyId: string;
  readonly name: string;
  readonly roles: readonly Role[];
  readonly scopes: ReadonlySet<Scope>;
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  /** Sees no raw record, and addresses only masked. */
  readonly masked: boolean;
}

/** The holder of this key, or null where it is unknown, expired or revoked: the three look alike from outside. */
export type Authenticate = (accessKey: string) => Promise<Caller | null>;

/** For routes that find out in their body which zone is meant. */
export function maySeeZone({ zoneIds }: Pick<Caller, "zoneIds">, zoneId: number): boolean {
  return zoneIds === null || zoneIds.includes(zoneId);
}

/** Who an audit entry says it was. An entry outlives every erasure, so an address in the name is masked. */
export function actorOf(caller: Caller | null): string {
  return caller === null ? "nobody" : `key ${caller.keyId} (${maskText(caller.name)})`;
}
