import { z } from "zod";
import { endSessions, listSessions } from "#db/people/sessions.ts";
import type { Caller } from "#operations/caller.ts";
import { IsoTime, Name, notFound, Text } from "#operations/fields.ts";
import { defineChange, defineQuery } from "#operations/operation.ts";

const TAG = "Keys";
const MOST = 500;

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

const list = defineQuery({
  name: "sessions.list",
  summary: "List sessions of the console, the one used last first",
  description: `An admin key lists all sessions, any other key its own. At most ${MOST} are listed.`,
  http: ["GET", "/api/v1/sessions"],
  tag: TAG,
  scope: "read",
  input: z.strictObject({}),
  output: z.object({ items: z.array(SessionItem) }),
  isForPages: true,
  run: async ({ db, caller, sessionId }) => {
    const rows = await listSessions(db, { keyId: ownOnly(caller), limit: MOST });
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

const end = defineChange({
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

export const sessionOperations = [list, end];

function ownOnly({ scopes, keyId }: Caller): string | null {
  return scopes.has("admin") ? null : keyId;
}
