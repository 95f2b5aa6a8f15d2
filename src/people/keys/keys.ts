import { z } from "zod";
import { findApiKeyIds, listApiKeys } from "#db/people/api-keys.ts";
import { endSessions, listSessions } from "#db/people/sessions.ts";
import { ago, showTime } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { ROLES } from "#model/kinds.ts";
import type { Caller } from "#operations/caller.ts";
import { IsoTime, Name, notFound, pageOf, pageQuery, Text, toPage, ZoneNumber } from "#operations/fields.ts";
import { defineChange, defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { requireAccounts } from "#operations/require-known.ts";
import {
  ADMIN_EXPIRES,
  ADMIN_RULE,
  EXPIRY_RULE,
  isRestrictedAdmin,
  issueKey,
  KeyItem,
  MAX_NAME_CHARS,
  readExpiry,
  toKeyItem,
  withdrawKey,
} from "./issue-key.ts";

const TAG = "Keys";
const PATH = "/api/v1/keys";

const FEED_RULE = "is never masked, because a block list has whole addresses";

type KeyItem = z.output<typeof KeyItem>;

const list = defineQuery({
  name: "keys.list",
  summary: "List keys, newest first",
  http: ["GET", PATH],
  tag: TAG,
  scope: "admin",
  input: z.strictObject({
    ...pageQuery({ fallback: 50, most: 500 }),
    all: z
      .enum(["true", "false"])
      .default("false")
      .meta({ isSwitch: true })
      .describe("Also list revoked and expired keys."),
  }),
  output: pageOf(KeyItem),
  command: {
    examples: ["keys list", "keys list --all --json"],
    help: "The secret part of a key is stored nowhere and cannot be shown.",
    columns: [
      { head: "KEY", get: ({ id }) => id },
      { head: "NAME", get: ({ name }) => escapeText(name) },
      { head: "ROLE", get: ({ roles, masked }) => `${roles.join(", ")}${masked ? ", masked" : ""}` },
      {
        head: "ZONES",
        get: ({ zones, accounts }) =>
          `${zones?.join(", ") ?? "all"}${accounts === null ? "" : ` (${accounts.join(", ")})`}`,
      },
      {
        head: "VALID UNTIL (UTC)",
        get: (key) => ({ text: describeValidity(key), style: key.isLive ? "green" : "dim" }),
      },
      {
        head: "LAST USED",
        get: ({ lastUsedAt: at }, { now }) => (at === null ? "never" : ago(now - Date.parse(at))),
      },
    ],
    empty: "No keys.",
  },
  run: async ({ db, cursors, service }, { limit, after, all }) => {
    const list = `keys:${all}`;
    const [beforeId = null] = cursors.readAfter(list, after)?.map(Number) ?? [];
    const rows = await listApiKeys(db, { beforeId, withDead: all === "true", limit: limit + 1 });
    return toPage(
      rows,
      limit,
      (row) => toKeyItem(row, service),
      ({ id }) => cursors.sign(list, [id]),
    );
  },
});

const create = defineChange({
  name: "keys.create",
  summary: "Create a key, which only this answer shows",
  description:
    "A session alone cannot create a key: send an admin key in the header AccessKey. Every call creates a new key, even if the name exists already. If an answer is lost, revoke the key that the list shows and create another.",
  http: ["POST", PATH],
  tag: TAG,
  scope: "admin",
  // A stolen session must not leave a key behind.
  withKey: true,
  input: z.strictObject({
    name: z
      .string()
      .trim()
      .min(1)
      .max(MAX_NAME_CHARS)
      .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+$/u, `must be 1 to ${MAX_NAME_CHARS} characters on one line`)
      .describe("The purpose of the key."),
    role: z.enum(ROLES),
    zones: z
      .array(ZoneNumber)
      .min(1)
      .max(1_000)
      .nullable()
      .default(null)
      .describe("The zones that the key is for. Default: every zone."),
    accounts: z
      .array(z.string().min(1).max(63))
      .min(1)
      .max(100)
      .nullable()
      .default(null)
      .describe(
        "Accounts whose zones the key is for, beside `zones`. The key follows an account that gets others.",
      ),
    masked: z.boolean().default(false).describe("The key sees no raw records, and addresses only masked."),
    expires: z
      .string()
      .refine((text) => readExpiry(text, "reader") !== undefined, `must be ${EXPIRY_RULE}`)
      .nullish()
      .describe(
        `Such as 12h, 90d or never; null is never. Default: ${ADMIN_EXPIRES} for an admin key, never for the others.`,
      ),
    endsWithParent: z
      .boolean()
      .default(false)
      .describe(
        "The key is revoked with the key that creates it, and expires no later. The console sends true unless the admin confirms that the key may outlive their own.",
      ),
  }),
  output: KeyItem.extend({ key: z.string().meta({ masked: "open" }) }),
  created: ({ id }) => `${PATH}/${id}`,
  command: {
    examples: [
      "keys create --name grafana --role reader",
      "keys create --name siem --role exporter --zones 101,102 --expires 90d",
      "keys create --name support --role reader --masked",
      "keys create --name agency --role operator --accounts agency-a",
      "keys create --name firewall --role feed --zones 101",
    ],
    help: "A feed key may fetch block lists and nothing else. A reader may read. An exporter may also export. An operator may also acknowledge and silence alerts. An admin may also manage keys. To replace a key, create a second key, switch to it, and revoke the first key.",
    say: ({ key, ...item }) =>
      `${describeKey(item)}\n  ${key}\n\nThe key is shown only this once. Send it in the header AccessKey.\n`,
  },
  run: async (changing, { name, role, zones, accounts, masked, expires, endsWithParent }) => {
    const { tx, caller, service } = changing;
    const expiresInMs = readExpiry(expires === null ? "never" : expires, role) ?? null;
    const parentKeyId = endsWithParent ? caller.keyId : null;
    const wanted = {
      name,
      role,
      zoneIds: accounts === null ? zones : (zones ?? []),
      accounts,
      isMasked: masked,
      expiresInMs,
      parentKeyId,
    };
    if (accounts !== null) requireAccounts(service, accounts, "accounts");
    const broken = isRestrictedAdmin(wanted) ? ADMIN_RULE : role === "feed" && masked ? FEED_RULE : null;
    if (broken !== null)
      throw new Refusal(400, {
        slug: "invalid-request",
        mistakes: [{ field: "role", value: role, rule: broken }],
      });
    const { key, listed, audit } = await issueKey(tx, wanted);
    return { output: { ...toKeyItem(listed, service), key: key.reveal() }, audit };
  },
});

const revoke = defineChange({
  name: "keys.revoke",
  summary: "Revoke a key, and the keys that end with it, from the next request on",
  http: ["DELETE", `${PATH}/:key`],
  tag: TAG,
  scope: "admin",
  refuses: [409],
  input: z.strictObject({
    key: z
      .string()
      .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,100}$/u, "must be the id or the name of a key")
      .describe("The key's id, or its name if no other key has that name."),
  }),
  output: z.object({
    id: KeyItem.shape.id,
    result: z.enum(["revoked", "over"]).describe("over: the key was revoked already."),
    ended: z.array(KeyItem.shape.id).describe("Keys that ended with it."),
  }),
  command: {
    examples: ["keys revoke 4f1d22c09b7e", "keys revoke grafana --by alice"],
    help: "Every replica refuses the key from the next request on. A revoked key cannot be restored.",
    say: ({ id, result, ended }) => {
      const said = result === "over" ? "was already revoked; nothing was changed" : "is revoked";
      const also = ended.length === 0 ? "" : ` Keys that end with it are revoked too: ${ended.join(", ")}.`;
      return `key ${id} ${said}.${also}\n`;
    },
  },
  run: async ({ tx }, { key }) => {
    const ids = await findApiKeyIds(tx, key);
    const [first, ...others] = ids;
    // An id is random, so an equal name is deliberate: the id wins.
    const id = ids.includes(key) ? key : first;
    if (id === undefined) throw new Refusal(404, { detail: `There is no key ${JSON.stringify(key)}.` });
    if (id !== key && others.length > 0)
      throw new Refusal(409, {
        slug: "several-keys",
        detail: `${JSON.stringify(key)} is the name of several keys; name one by its id: ${ids.join(", ")}`,
      });
    const result = await withdrawKey(tx, id);
    if (typeof result === "string")
      return { output: { id, result: "over" as const, ended: [] }, audit: null };
    return { output: { id, result: "revoked" as const, ended: [...result.ended] }, audit: result.audit };
  },
});

/** Returns one line with its line break. */
function describeKey({ id, name, roles, zones, masked, endsWith, lastUsedAt, ...key }: KeyItem): string {
  const parts = [
    roles.join(", "),
    zones === null ? "every zone" : `zone ${zones.join(", ")}`,
    ...(masked ? ["masked"] : []),
    describeValidity(key),
    ...(endsWith === null ? [] : [`ends with ${endsWith}`]),
    lastUsedAt === null ? "never used" : `last used ${showTime(lastUsedAt)}`,
  ];
  return `${id}  ${escapeText(name)}: ${parts.join("; ")}\n`;
}

function describeValidity({
  revokedAt,
  expiresAt,
  isLive,
}: Pick<KeyItem, "revokedAt" | "expiresAt" | "isLive">) {
  if (revokedAt !== null) return `revoked ${showTime(revokedAt)}`;
  if (expiresAt === null) return "until it is revoked";
  return `${isLive ? "until" : "expired"} ${showTime(expiresAt)}`;
}

const MOST_SESSIONS = 500;

const SessionItem = z
  .object({
    id: Name,
    keyId: Name,
    keyName: Text,
    roles: z.array(Name),
    userAgent: Name,
    createdAt: IsoTime,
    lastUsedAt: IsoTime.describe("Accurate to the minute."),
    expiresAt: IsoTime,
    isCurrent: z.boolean().describe("Whether the request came with this session."),
  })
  .meta({ id: "SessionItem" });

const listOfSessions = defineQuery({
  name: "sessions.list",
  summary: "List sessions of the console, the one used last first",
  description: `An admin key lists all sessions, any other key its own. At most ${MOST_SESSIONS} are listed.`,
  http: ["GET", "/api/v1/sessions"],
  tag: TAG,
  scope: "read",
  input: z.strictObject({}),
  output: z.object({ items: z.array(SessionItem) }),
  isForPages: true,
  run: async ({ db, caller, sessionId }) => {
    const rows = await listSessions(db, { keyId: ownOnly(caller), limit: MOST_SESSIONS });
    const items = rows.map((row) => ({
      ...row,
      createdAt: row.createdAt.toISOString(),
      lastUsedAt: row.lastUsedAt.toISOString(),
      expiresAt: row.expiresAt.toISOString(),
      isCurrent: row.id === sessionId,
    }));
    return { items };
  },
});

const endSession = defineChange({
  name: "sessions.end",
  summary: "End a session, which is refused from the next request on",
  http: ["DELETE", "/api/v1/sessions/:id"],
  tag: TAG,
  scope: "read",
  input: z.strictObject({ id: z.string().regex(/^[0-9a-f]{1,64}$/, "must be the id of a session") }),
  output: z.void(),
  run: async ({ tx, caller }, { id }) => {
    const ended = await endSessions(tx, { id, keyId: ownOnly(caller) });
    if (ended.length === 0) throw notFound(`session ${id}`);
    return {
      output: undefined,
      audit: { action: "session.revoked", subject: `session ${id}`, details: {} },
    };
  },
});

function ownOnly({ scopes, keyId }: Caller): string | null {
  return scopes.has("admin") ? null : keyId;
}

export const keyOperations = [list, create, revoke, listOfSessions, endSession];
