import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Database, Queryable } from "#db/client.ts";
import { listApiKeys } from "#db/keys/api-keys.ts";
import { actorOf } from "#operations/caller.ts";
import { known, pageOf, pageQuery, toPage } from "#operations/fields.ts";
import type { PageCursors } from "#operations/page-cursor.ts";
import { Refusal } from "#operations/refusal.ts";
import { ROLES } from "#operations/roles.ts";
import { issueKey, withdrawKey } from "../../keys/issue-key.ts";
import { KeyItem, toKeyItem } from "../../keys/key-item.ts";
import {
  ADMIN_EXPIRES,
  ADMIN_RULE,
  EXPIRY_RULE,
  isRestrictedAdmin,
  MAX_NAME_CHARS,
  readExpiry,
} from "../../keys/wanted-key.ts";

const access = { scope: "admin" } as const;
/** A stolen session must not leave a key behind. */
const createAccess = { scope: "admin", withKey: true } as const;
const MAX_ZONE_ID = 2_147_483_647;

const ListQuery = z.strictObject({
  ...pageQuery({ fallback: 50, most: 500 }),
  all: z.enum(["true", "false"]).default("false").describe("true: also list revoked and expired keys."),
});

export const CreateBody = z.strictObject({
  name: z
    .string()
    .trim()
    .min(1)
    .max(MAX_NAME_CHARS)
    .regex(/^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]+$/u, `must be 1 to ${MAX_NAME_CHARS} characters on one line`),
  role: z.enum(ROLES),
  zones: z.array(z.int().min(1).max(MAX_ZONE_ID)).min(1).max(1_000).nullable().default(null),
  masked: z.boolean().default(false),
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
      "true: the key is revoked with the key that creates it, and expires no later. The console sends true unless the admin confirms that the key may outlive their own.",
    ),
});

export interface KeyRoutes {
  readonly archive: Queryable;
  readonly keys: Database;
  readonly cursors: PageCursors;
}

/** `/api/v1/keys`: what `longwatch keys` does. */
export function addKeys(app: FastifyInstance, { archive, keys, cursors }: KeyRoutes): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.get(
    "/api/v1/keys",
    {
      config: { access },
      schema: {
        tags: ["Keys"],
        summary: "List keys, newest first",
        querystring: ListQuery,
        response: { 200: pageOf(KeyItem) },
      },
    },
    async ({ query: { limit, after, all } }) => {
      const list = `keys:${all}`;
      const [beforeId = null] = cursors.readAfter(list, after) ?? [];
      const query = { beforeId: beforeId === null ? null : Number(beforeId), withDead: all === "true" };
      const rows = await listApiKeys(archive, { ...query, limit: limit + 1 });
      return toPage(rows, limit, toKeyItem, ({ id }) => cursors.sign(list, [id]));
    },
  );
  typed.post(
    "/api/v1/keys",
    {
      config: { access: createAccess },
      schema: {
        tags: ["Keys"],
        summary: "Create a key, which only this answer shows",
        description:
          "A session alone cannot create a key: send an admin key in the header AccessKey. Every call creates a new key, even if the name exists already. If an answer is lost, revoke the key that the list shows and create another.",
        body: CreateBody,
        response: { 201: KeyItem.extend({ key: z.string() }) },
      },
    },
    async ({ body, caller }, reply) => {
      const { name, role, zones, masked, expires, endsWithParent } = body;
      const expiresInMs = readExpiry(expires === null ? "never" : expires, role) ?? null;
      const parentKeyId = endsWithParent ? known(caller).keyId : null;
      const wanted = { name, role, zoneIds: zones, isMasked: masked, expiresInMs, parentKeyId };
      if (isRestrictedAdmin(wanted))
        throw new Refusal(400, {
          slug: "invalid-request",
          mistakes: [{ field: "role", value: role, rule: ADMIN_RULE }],
        });
      const { key, listed } = await issueKey(keys, wanted, actorOf(caller));
      return reply.code(201).send({ ...toKeyItem(listed), key: key.reveal() });
    },
  );
  typed.delete(
    "/api/v1/keys/:id",
    {
      config: { access },
      schema: {
        tags: ["Keys"],
        summary: "Revoke a key, and the keys that end with it, from the next request on",
        params: z.strictObject({ id: z.string().regex(/^[a-z0-9]{1,64}$/, "must be the id of a key") }),
        response: { 204: z.void() },
      },
    },
    async ({ params: { id }, caller }, reply) => {
      const result = await withdrawKey(keys, id, actorOf(caller));
      if (result === "unknown") throw new Refusal(404, { detail: "There is no key with this id." });
      return reply.code(204).send();
    },
  );
}
