import type { Database } from "#db/client.ts";
import { writeAuditEntry } from "#db/keys/audit-trail.ts";
import { findSignInKey, insertSignInToken } from "#db/keys/sessions.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import { createToken } from "#model/access-key.ts";

const LINK_LASTS_MS = 10 * 60_000;

export type SignInLink =
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
