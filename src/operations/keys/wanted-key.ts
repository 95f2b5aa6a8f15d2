import type { Role } from "#model/kinds.ts";

/** The request for a new key. */
export interface WantedKey {
  readonly name: string;
  readonly role: Role;
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  /** Sees no raw record, and addresses only masked. */
  readonly isMasked: boolean;
  /** Null is for good. */
  readonly expiresInMs: number | null;
  /** The key that this one ends with. Default: none. */
  readonly parentKeyId?: string | null;
}

const UNIT_MS = { h: 3_600_000, d: 86_400_000 } as const;
const MAX_MS = 3_650 * UNIT_MS.d;
const NEVER = "never";
/** An admin key that nobody watches any more should not work for ever. */
export const ADMIN_EXPIRES = "90d";
export const EXPIRY_RULE = `hours or days such as 12h or 90d, at most 3650d, or ${NEVER}`;
export const MAX_NAME_CHARS = 100;
export const ADMIN_RULE =
  "an admin key can create any other key, so it is always valid for every zone and never masked";

/** Returns the milliseconds of what was asked for, null for `never`; undefined if the text is neither. */
export function readExpiry(text: string | undefined, role: Role): number | null | undefined {
  if (text === NEVER) return null;
  if (text === undefined) return role === "admin" ? readDuration(ADMIN_EXPIRES) : null;
  return readDuration(text) ?? undefined;
}

function readDuration(text: string): number | null {
  const [, amount = "0", unit = "h"] = /^(\d{1,6})([hd])$/.exec(text) ?? [];
  const ms = Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
  return ms > 0 && ms <= MAX_MS ? ms : null;
}

/** Whether it would restrict a key that could lift the restriction itself. */
export function isRestrictedAdmin({ role, zoneIds, isMasked }: WantedKey): boolean {
  return role === "admin" && (zoneIds !== null || isMasked);
}
