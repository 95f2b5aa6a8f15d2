import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Queryable } from "../../../../db/client.ts";
import { type ListedApiKey, listApiKeys } from "../../../../db/queries/api-keys.ts";
import { ROLES } from "../../access.ts";
import type { PageCursors } from "../../page-cursor.ts";

const MAX_LIMIT = 500;

const KeyItem = z
  .object({
    id: z.string().describe("the public part of the key"),
    name: z.string(),
    roles: z.array(z.enum(ROLES).or(z.string())),
    zones: z.array(z.int()).nullable().describe("null is every zone"),
    masked: z.boolean().describe("sees no raw record, and addresses only masked"),
    createdAt: z.string(),
    expiresAt: z.string().nullable(),
    revokedAt: z.string().nullable(),
    lastUsedAt: z.string().nullable().describe("to the minute"),
    isLive: z.boolean(),
  })
  .meta({ id: "Key" });

export interface KeyRoutes {
  readonly archive: Queryable;
  readonly cursors: PageCursors;
}

export function addKeys(app: FastifyInstance, { archive, cursors }: KeyRoutes): void {
  app.withTypeProvider<ZodTypeProvider>().get(
    "/api/v1/keys",
    {
      config: { access: { scope: "admin" } },
      schema: {
        summary: "Keys, the newest first",
        querystring: z.strictObject({
          limit: z.coerce.number().int().min(1).max(MAX_LIMIT).default(50),
          after: z.string().optional(),
          all: z.enum(["true", "false"]).default("false").describe("also those that are revoked or expired"),
        }),
        response: { 200: z.object({ items: z.array(KeyItem), next: z.string().nullable() }) },
      },
    },
    async ({ query: { limit, after, all } }) => {
      const list = `keys:${all}`;
      const [beforeId = null] = cursors.readAfter(list, after) ?? [];
      const query = { beforeId: beforeId === null ? null : Number(beforeId), withDead: all === "true" };
      const rows = await listApiKeys(archive, { ...query, limit: limit + 1 });
      const shown = rows.slice(0, limit);
      const last = rows.length > limit ? shown.at(-1) : undefined;
      return { items: shown.map(toItem), next: last === undefined ? null : cursors.sign(list, [last.id]) };
    },
  );
}

function toItem({ keyId, name, roles, zoneIds, isMasked, isLive, ...times }: ListedApiKey) {
  const toText = (at: Date | null) => at?.toISOString() ?? null;
  return {
    id: keyId,
    name,
    roles,
    zones: zoneIds,
    masked: isMasked,
    createdAt: times.createdAt.toISOString(),
    expiresAt: toText(times.expiresAt),
    revokedAt: toText(times.revokedAt),
    lastUsedAt: toText(times.lastUsedAt),
    isLive,
  };
}
