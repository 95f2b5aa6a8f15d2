import { randomBytes } from "node:crypto";
import type { SignIn } from "#config/file/sign-in-entry.ts";
import { createDatabase, type Database, type Queryable } from "#db/client.ts";
import { findApiKey, touchApiKey } from "#db/people/api-keys.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import {
  changeRights,
  endSessions,
  type FoundSession,
  findSessions,
  insertSession,
  insertSignInToken,
  readIdToken,
  touchKeyOf,
  touchSession,
  useSignInToken,
} from "#db/people/sessions.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { createAuthenticate, createLastUsed, toCaller } from "#faces/http/keys/authenticate.ts";
import type { NewSession, Sessions, SignedPerson } from "#faces/http/keys/sessions.ts";
import { systemClock } from "#lib/clock.ts";
import { toError } from "#lib/errors.ts";
import type { Log } from "#lib/log.ts";
import type { StopStack } from "#lib/process.ts";
import { createSecret, type Secret } from "#lib/secret.ts";
import {
  createSessionTokens,
  FLOW_LASTS_MS,
  hashSessionTokens,
  hashToken,
  type SessionTokens,
} from "#model/access-key.ts";
import { type Authenticate, actorOf, type Caller } from "#operations/caller.ts";
import { grantAgain } from "#people/keys/grant-person.ts";
import { reportLostConnections } from "./report-outages.ts";

const CONNECTIONS = 3;
const TIMEOUT_MS = 5_000;

export interface KeysParts {
  readonly databaseUrl: Secret;
  readonly log: Log;
  readonly accounts: Parameters<typeof toCaller>[1];
}

export interface OpenKeys {
  readonly database: Database;
  readonly authenticate: Authenticate;
  readonly toCaller: (found: FoundSession["caller"]) => Caller;
}

/**
 * Opens connections for keys and for security events only, so that neither many wrong keys nor a slow search delays
 * other requests.
 */
export function openKeys({ databaseUrl, log, accounts }: KeysParts, stack: StopStack): OpenKeys {
  const database = createDatabase({
    url: databaseUrl.reveal(),
    max: CONNECTIONS,
    applicationName: "longwatch keys",
    statementTimeoutMs: TIMEOUT_MS,
    lockTimeoutMs: TIMEOUT_MS,
    connectTimeoutMs: TIMEOUT_MS,
    onError: reportLostConnections(log, "key database connection lost"),
  });
  stack.defer("keys", () => database.close());
  const onUsed = createLastUsed({
    clock: systemClock,
    touch: (keyId) => touchApiKey(database.db, keyId),
    onError: (thrown) => log.warn({ err: toError(thrown) }, "last key use not recorded"),
  });
  const withAccounts: OpenKeys["toCaller"] = (found) => toCaller(found, accounts);
  const find = (keyId: string) => findApiKey(database.db, keyId);
  const authenticate = createAuthenticate({ find, toCaller: withAccounts, onUsed });
  return { database, authenticate, toCaller: withAccounts };
}

const MAX_USER_AGENT_CHARS = 200;

/**
 * Returns the console's sessions, stored over the connections of the keys. `signIn` returns the settings as they are now:
 * each request gives a person the rights that these give, and ends the session if they give none.
 */
export function openSessions(
  { database, toCaller }: Pick<OpenKeys, "database" | "toCaller">,
  log: Log,
  signIn: () => SignIn | null,
): Sessions {
  const onUsed = createLastUsed({
    clock: systemClock,
    // A session is a use of its key.
    touch: async (id) => {
      await Promise.all([touchSession(database.db, id), touchKeyOf(database.db, id)]);
    },
    onError: (thrown) => log.warn({ err: toError(thrown) }, "last session use not recorded"),
  });
  return {
    async find(tokens) {
      const hashes = tokens.flatMap((one) => hashSessionTokens(one) ?? []);
      const [found] = await findSessions(database.db, hashes);
      const isChanged = found !== undefined && (await grantSession(database, found, signIn()));
      const [session] = isChanged ? await findSessions(database.db, hashes) : [found];
      if (session === undefined) return null;
      return { id: session.id, expiresAt: session.expiresAt, caller: toCaller(session.caller) };
    },
    noteUse: ({ id }) => onUsed(id),
    openByKey: (caller, session) =>
      inTransaction(database, async ({ tx }) => await open(tx, { caller, how: "key" }, session)),
    openByLink: (token, session) =>
      inTransaction(database, async ({ tx }) => {
        const hash = hashToken(token);
        const keyId = hash === null ? null : await useSignInToken(tx, hash);
        const key = keyId === null ? null : await findApiKey(tx, keyId);
        return key === null ? null : await open(tx, { caller: toCaller(key), how: "link" }, session);
      }),
    openByIssuer: (signed, session) =>
      inTransaction(database, async ({ tx }) => {
        const { caller, flowHash: tokenHash } = signed;
        const used = { tokenHash, keyId: caller.keyId, lastsMs: FLOW_LASTS_MS, isUsed: true } as const;
        return (await insertSignInToken(tx, used))
          ? await open(tx, { caller, how: "issuer", signed }, session)
          : null;
      }),
    end: ({ id, caller }, { everywhere }) =>
      inTransaction(database, async ({ tx }) => {
        const idToken = await readIdToken(tx, id);
        const ended = await endSessions(tx, everywhere ? { keyId: caller.keyId } : { id, keyId: null });
        for (const one of ended)
          await writeAuditEntry(tx, {
            actor: actorOf(caller),
            action: "session.ended",
            subject: `session ${one}`,
            details: everywhere ? { everywhere } : {},
          });
        return idToken === null ? null : createSecret(idToken);
      }),
  };
}

/**
 * Grants the rights of all people who are signed in by the settings as they are now. So a session that nobody uses is no
 * exception: it is listed with its rights, and one without rights does not return with the settings of before.
 */
export async function grantSessions(database: Database, signIn: () => SignIn | null): Promise<void> {
  for (const found of await findSessions(database.db, null)) await grantSession(database, found, signIn());
}

/** Stores the rights that a person's session has by these settings, or ends the session. Returns whether that changed it. */
async function grantSession(
  database: Database,
  { id, caller, person }: FoundSession,
  settings: SignIn | null,
): Promise<boolean> {
  if (person === null) return false;
  const granted = grantAgain(person.basis, settings);
  // A person has no accounts: the zones of a role are those of its accounts already.
  const before = toCaller(caller, []);
  const nameRights = ({ roles, zoneIds, masked }: Pick<Caller, "roles" | "zoneIds" | "masked">) => ({
    roles: [...roles],
    zoneIds: zoneIds?.slice() ?? null,
    isMasked: masked,
  });
  const rights = granted === null ? null : nameRights(granted);
  if (JSON.stringify(rights) === JSON.stringify(nameRights(before))) return false;
  await inTransaction(database, async ({ tx }) => {
    const isChanged =
      rights === null
        ? (await endSessions(tx, { id, keyId: null })).length > 0
        : await changeRights(tx, id, rights);
    // If two requests come at once, one of them writes.
    if (!isChanged) return;
    await writeAuditEntry(tx, {
      actor: actorOf(before),
      action: rights === null ? "session.ended" : "session.changed",
      subject: `session ${id}`,
      details: { by: "sign_in", ...rights },
    });
  });
  return true;
}

async function open(
  tx: Queryable,
  { caller, how, signed }: { caller: Caller; how: "key" | "link" | "issuer"; signed?: SignedPerson },
  { userAgent, network, before }: NewSession,
): Promise<SessionTokens> {
  const replaced: string[] = [];
  const hashes = before.flatMap((one) => hashSessionTokens(one) ?? []);
  for (const old of await findSessions(tx, hashes))
    replaced.push(...(await endSessions(tx, { id: old.id, keyId: null })));
  const { tokens, hash } = createSessionTokens();
  const id = randomBytes(6).toString("hex");
  await insertSession(tx, {
    id,
    tokenHash: hash,
    keyId: caller.keyId,
    ...(signed && {
      personName: caller.name,
      roles: [...caller.roles],
      zoneIds: caller.zoneIds?.slice() ?? null,
      isMasked: caller.masked,
      tokenEndsAt: signed.endsAt,
      claims: signed.basis,
      idToken: signed.idToken.reveal(),
    }),
    userAgent: userAgent.replaceAll(/[^\x20-\x7E]/g, "").slice(0, MAX_USER_AGENT_CHARS),
  });
  const details = { by: how, network, ...(replaced.length === 0 ? {} : { replaces: replaced.join() }) };
  await writeAuditEntry(tx, {
    actor: actorOf(caller),
    action: "session.opened",
    subject: `session ${id}`,
    details,
  });
  return tokens;
}
