import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Database } from "#db/client.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { endSessions, listSessions } from "#db/keys/sessions.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { actorOf, type Caller } from "#operations/caller.ts";
import { known, notFound } from "#operations/fields.ts";

const MOST = 500;

export const SessionItem = z
  .object({
    id: z.string(),
    keyId: z.string(),
    keyName: z.string(),
    roles: z.array(z.string()),
    userAgent: z.string(),
    createdAt: z.string(),
    lastUsedAt: z.string().describe("Accurate to the minute."),
    expiresAt: z.string(),
    isCurrent: z.boolean().describe("Whether the request came with this session."),
  })
  .meta({ id: "SessionItem" });

/** `/api/v1/sessions`: an admin sees and ends every session, every other key its own. */
export function addSessions(app: FastifyInstance, { keys }: { readonly keys: Database }): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  typed.get(
    "/api/v1/sessions",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Keys"],
        summary: "List sessions of the console, the one used last first",
        description: `An admin key lists all sessions, any other key its own. At most ${MOST} are listed.`,
        response: { 200: z.object({ items: z.array(SessionItem) }) },
      },
    },
    async ({ caller, session }) => {
      const rows = await listSessions(keys.db, { keyId: ownOnly(known(caller)), limit: MOST });
      const items = rows.map((row) => ({
        ...row,
        createdAt: row.createdAt.toISOString(),
        lastUsedAt: row.lastUsedAt.toISOString(),
        expiresAt: row.expiresAt.toISOString(),
        isCurrent: row.id === session?.id,
      }));
      return { items };
    },
  );
  typed.delete(
    "/api/v1/sessions/:id",
    {
      config: { access: { scope: "read" } },
      schema: {
        tags: ["Keys"],
        summary: "End a session, which is refused from the next request on",
        params: z.strictObject({ id: z.string().regex(/^[0-9a-f]{1,64}$/, "must be the id of a session") }),
        response: { 204: z.void() },
      },
    },
    async ({ params: { id }, caller }, reply) => {
      const ended = await inTransaction(keys, async ({ tx }) => {
        const ids = await endSessions(tx, { id, keyId: ownOnly(known(caller)) });
        const entry = {
          actor: actorOf(caller),
          action: "session.revoked",
          subject: `session ${id}`,
          details: {},
        };
        if (ids.length > 0) await writeAuditEntry(tx, entry);
        return ids;
      });
      if (ended.length === 0) throw notFound(`session ${id}`);
      return reply.code(204).send();
    },
  );
}

function ownOnly({ scopes, keyId }: Caller): string | null {
  return scopes.has("admin") ? null : keyId;
}
