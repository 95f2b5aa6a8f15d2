/** Issues keys: for people, for the first start and for a link to sign in. */

import { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
import type { Database, Queryable } from "#db/client.ts";
import {
  insertApiKey,
  insertFirstApiKey,
  keepApiKey,
  type ListedApiKey,
  type NewApiKey,
  revokeApiKey,
} from "#db/people/api-keys.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { findSignInKey, insertSignInToken } from "#db/people/sessions.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { UsageError } from "#lib/errors.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { createAccessKey, createToken, hashAccessKey, readKeyId } from "#model/access-key.ts";
import type { Role } from "#model/kinds.ts";
import { zonesOfKey } from "#model/zones.ts";
import { IsoTime, Name, Text } from "#operations/fields.ts";
import type { AuditNote } from "#operations/operation.ts";
import type { ServiceView } from "#operations/service-life.ts";

/** The request for a new key. */
export interface WantedKey {
  readonly name: string;
  readonly role: Role;
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  /** The key is also for the zones that these accounts have. Default: none. */
  readonly accounts?: readonly string[] | null;
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

export const KeyItem = z
  .object({
    id: Name.describe("Public part of the key."),
    name: Text,
    roles: z.array(Name),
    zones: z.array(z.int()).nullable().describe("Those of now. Null means every zone."),
    accounts: z.array(Name).nullable().describe("Accounts whose zones the key follows; null for none."),
    masked: z.boolean().describe("The key sees no raw records, and IP addresses only masked."),
    createdAt: IsoTime,
    expiresAt: IsoTime.nullable(),
    revokedAt: IsoTime.nullable(),
    lastUsedAt: IsoTime.nullable().describe("Accurate to the minute."),
    isLive: z.boolean(),
    endsWith: Name.nullable().describe("Public part of the key that ends this one; null if none does."),
  })
  .meta({ id: "Key" });

/** A key as commands and routes show it; times are ISO texts. */
export function toKeyItem(
  key: ListedApiKey,
  { accounts }: Pick<ServiceView, "accounts">,
): z.output<typeof KeyItem> {
  const toText = (at: Date | null) => at?.toISOString() ?? null;
  return {
    id: key.keyId,
    name: key.name,
    roles: key.roles,
    zones: zonesOfKey(key, accounts)?.slice() ?? null,
    accounts: key.accounts,
    masked: key.isMasked,
    createdAt: key.createdAt.toISOString(),
    expiresAt: toText(key.expiresAt),
    revokedAt: toText(key.revokedAt),
    lastUsedAt: toText(key.lastUsedAt),
    isLive: key.isLive,
    endsWith: key.parentKeyId,
  };
}

interface IssuedKey {
  readonly key: Secret;
  readonly listed: ListedApiKey;
  readonly audit: AuditNote;
}

/** Creates a key. The key itself is stored nowhere and is shown once. */
export async function issueKey(tx: Queryable, wanted: WantedKey): Promise<IssuedKey> {
  const { keyId, key, hash } = createAccessKey();
  const listed = await insertApiKey(tx, toRow(wanted, { keyId, hash }));
  const { role, zoneIds, accounts = null, isMasked, parentKeyId = null } = wanted;
  // The entry outlives every erasure.
  const name = maskText(wanted.name);
  const expiresAt = listed.expiresAt?.toISOString() ?? null;
  const ends = parentKeyId === null ? {} : { endsWith: `key ${parentKeyId}` };
  const details = { name, role, zoneIds, ...(accounts && { accounts }), isMasked, expiresAt, ...ends };
  return {
    key: createSecret(key),
    listed,
    audit: { action: "key.created", subject: `key ${keyId}`, details },
  };
}

/**
 * Revokes a key and the keys that end with it, from the next request on, on every replica. `ended` has the ids of those
 * keys. `over`: the key was revoked already.
 */
export async function withdrawKey(
  tx: Queryable,
  keyId: string,
): Promise<{ readonly ended: readonly string[]; readonly audit: readonly AuditNote[] } | "over" | "unknown"> {
  const ended = await revokeApiKey(tx, keyId);
  if (typeof ended === "string") return ended;
  const revoked = (id: string, details: object) => ({ action: "key.revoked", subject: `key ${id}`, details });
  const others = ended.map((id) => revoked(id, { endedWith: `key ${keyId}` }));
  return { ended, audit: [revoked(keyId, {}), ...others] };
}

function toRow(wanted: WantedKey, { keyId, hash }: { keyId: string; hash: Buffer }): NewApiKey {
  const { name, role, isMasked, expiresInMs, parentKeyId = null } = wanted;
  const [zoneIds, accounts] = [wanted.zoneIds?.slice() ?? null, wanted.accounts?.slice() ?? null];
  return { keyId, keyHash: hash, name, roles: [role], zoneIds, accounts, isMasked, expiresInMs, parentKeyId };
}

const ACTOR = "longwatch start";

/**
 * Makes sure that there is an admin key: keeps the configured key, or creates one on the first start of a database.
 * Returns the new key, which is shown once; null if none was created.
 * @throws {UsageError} if another key has the id of the configured key
 */
export async function openAdminKey(database: Database, given: Secret | null): Promise<Secret | null> {
  if (given === null) return makeFirst(database);
  await keep(database, given.reveal());
  return null;
}

async function makeFirst(database: Database): Promise<Secret | null> {
  const { keyId, key, hash } = createAccessKey();
  const isFirst = await inTransaction(database, async ({ tx }) => {
    const made = await insertFirstApiKey(
      tx,
      toRow(adminNamed("first admin", ADMIN_EXPIRES), { keyId, hash }),
    );
    if (made) await writeAuditEntry(tx, created(keyId));
    return made;
  });
  return isFirst ? createSecret(key) : null;
}

/** Stores the configured key. A revoked key stays revoked, because a restart must not restore it. */
async function keep(database: Database, key: string): Promise<void> {
  const keyId = readKeyId(key) ?? "";
  const kept = await inTransaction(database, async ({ tx }) => {
    const row = toRow(adminNamed("admin of the configuration", "never"), { keyId, hash: hashAccessKey(key) });
    const result = await keepApiKey(tx, row);
    if (result === "added") await writeAuditEntry(tx, created(keyId));
    return result;
  });
  if (kept === "different")
    throw new UsageError([
      `LONGWATCH_ADMIN_KEY: [secret]: must have an id of its own: ${keyId} is that of another key`,
    ]);
}

function adminNamed(name: string, expires: string): WantedKey {
  const expiresInMs = readExpiry(expires, "admin") ?? null;
  return { name, role: "admin", zoneIds: null, isMasked: false, expiresInMs };
}

function created(keyId: string) {
  return { actor: ACTOR, action: "key.created", subject: `key ${keyId}`, details: { role: "admin" } };
}

const LINK_LASTS_MS = 10 * 60_000;

type SignInLink =
  | { readonly kind: "made"; readonly link: Secret; readonly keyId: string }
  /** No live key has this id or name, or, where none was named, there is no live admin key. */
  | { readonly kind: "no-key" }
  | { readonly kind: "several"; readonly keyIds: readonly string[] };

/** A link that signs in once, within ten minutes, with the rights of `key`; without one, of the oldest live admin key. */
export function createSignInLink(
  database: Database,
  { url, key, actor }: { readonly url: string; readonly key: string | null; readonly actor: string },
): Promise<SignInLink> {
  return inTransaction(database, async ({ tx }): Promise<SignInLink> => {
    const found = await findSignInKey(tx, key);
    // An id is random, so an equal name is deliberate: the id wins.
    const keyId = key !== null && found.includes(key) ? key : found[0];
    if (keyId === undefined) return { kind: "no-key" };
    if (keyId !== key && found.length > 1) return { kind: "several", keyIds: found };
    const { token, hash } = createToken();
    await insertSignInToken(tx, { tokenHash: hash, keyId, lastsMs: LINK_LASTS_MS });
    await writeAuditEntry(tx, {
      actor,
      action: "sign-in-link.created",
      subject: `key ${keyId}`,
      details: {},
    });
    return { kind: "made", keyId, link: createSecret(`${url.replace(/\/$/, "")}/sign-in#${token.reveal()}`) };
  });
}
