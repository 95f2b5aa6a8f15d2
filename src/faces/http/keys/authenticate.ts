import type { FoundApiKey } from "#db/keys/api-keys.ts";
import type { FoundSession } from "#db/keys/sessions.ts";
import { isSameKey, readKeyId } from "#model/access-key.ts";
import type { Authenticate, Caller } from "#operations/caller.ts";
import { isRole, scopesOf } from "#operations/roles.ts";

export interface AuthenticateOptions {
  /** Called for every request, so that a revoked key fails on its next request, at any replica. */
  readonly find: (keyId: string) => Promise<FoundApiKey | null>;
  readonly onUsed: (keyId: string) => void;
}

/** An id that no key has. A text that is not a key takes the same path as an unknown key. */
const NO_ID = "";

export function createAuthenticate({ find, onUsed }: AuthenticateOptions): Authenticate {
  return async (accessKey) => {
    const found = await find(readKeyId(accessKey) ?? NO_ID);
    const isSame = isSameKey(accessKey, found?.keyHash ?? null);
    if (found === null || !isSame || !found.isLive) return null;
    onUsed(found.keyId);
    return toCaller(found);
  };
}

export function toCaller({ keyId, name, zoneIds, isMasked, ...found }: FoundSession["caller"]): Caller {
  const roles = found.roles.filter(isRole);
  return { keyId, name, roles, scopes: scopesOf(roles), zoneIds, masked: isMasked };
}
