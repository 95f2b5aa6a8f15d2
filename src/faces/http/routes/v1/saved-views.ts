import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import type { Database } from "#db/client.ts";
import {
  deleteSavedView,
  insertSavedView,
  listSavedViews,
  type SavedViewRow,
  updateSavedView,
} from "#db/keys/saved-views.ts";
import type { Caller } from "#operations/caller.ts";
import { known, lineOf, notFound, pageOf, pageQuery, RowId, toPage } from "#operations/fields.ts";
import type { PageCursors } from "#operations/page-cursor.ts";
import { Refusal } from "#operations/refusal.ts";
import { describeLack } from "#operations/roles.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";

const MOST_PER_KEY = 200;
const MAX_STATE_CHARS = 4_000;

export const SavedViewBody = z.strictObject({
  name: lineOf(80),
  page: z.enum(["overview", "explorer", "alerts", "rules", "coverage"]),
  state: z
    .string()
    .max(MAX_STATE_CHARS)
    .regex(/^[^\p{Cc}\p{Cs}]*$/u, "must be one line")
    // So that an erasure finds an IPv6 address in it.
    .transform((state) => state.replaceAll(/%3a/gi, ":"))
    .describe("The query part of the page's URL, without the question mark."),
  isShared: z
    .boolean()
    .default(false)
    .describe("Whether every key sees it. Only an operator or an admin may share."),
});

export const SavedView = z
  .object({
    id: z.number().int(),
    name: z.string(),
    page: z.string(),
    state: z.string(),
    isShared: z.boolean(),
    isOwn: z.boolean().describe("Whether this key may change it."),
    createdBy: z.string(),
    createdAt: z.string(),
    changedAt: z.string(),
  })
  .meta({ id: "SavedView" });

/** `/api/v1/views`: searches of the console under a name, of one key or shared. */
export function addSavedViews(
  app: FastifyInstance,
  { keys, cursors }: { readonly keys: Database; readonly cursors: PageCursors },
): void {
  const typed = app.withTypeProvider<ZodTypeProvider>();
  const tags = ["Service"];
  const config = { access: { scope: "read" } } as const;
  typed.get(
    "/api/v1/views",
    {
      config,
      schema: {
        tags,
        summary: "List saved views, oldest first",
        querystring: z.strictObject(pageQuery({ fallback: 100, most: 500 })),
        response: { 200: pageOf(SavedView) },
      },
    },
    async ({ query: { limit, after }, caller }) => {
      const asking = known(caller);
      const [afterId = 0] = cursors.readAfter("views", after) ?? [];
      const query = { keyId: asking.keyId, afterId: Number(afterId), limit: limit + 1 };
      const rows = await listSavedViews(keys.db, query);
      return toPage(
        rows,
        limit,
        (row) => toView(row, asking),
        ({ id }) => cursors.sign("views", [id]),
      );
    },
  );
  typed.post(
    "/api/v1/views",
    {
      config: { ...config, refuses: [409] },
      schema: { tags, summary: "Save a view", body: SavedViewBody, response: { 201: SavedView } },
    },
    async ({ body, caller }, reply) => {
      const asking = mayShare(caller, body.isShared);
      const row = await insertSavedView(
        keys.db,
        { ...body, keyId: asking.keyId, createdBy: asking.name },
        MOST_PER_KEY,
      );
      if (row === null)
        throw new Refusal(409, {
          slug: "too-many-views",
          detail: `This key already has ${MOST_PER_KEY} saved views. Delete one first.`,
        });
      return reply.code(201).send(toView(row, asking));
    },
  );
  typed.put(
    "/api/v1/views/:id",
    {
      config,
      schema: {
        tags,
        summary: "Change a saved view",
        params: z.object({ id: RowId }),
        body: SavedViewBody,
        response: { 200: SavedView },
      },
    },
    async ({ params: { id }, body, caller }) => {
      const asking = mayShare(caller, body.isShared);
      const row = await updateSavedView(keys.db, { ...body, id, keyId: asking.keyId });
      if (row === null) throw notFound(`saved view ${id}`);
      return toView(row, asking);
    },
  );
  typed.delete(
    "/api/v1/views/:id",
    {
      config,
      schema: {
        tags,
        summary: "Delete a saved view",
        description: "An admin key may delete the views of every key.",
        params: z.object({ id: RowId }),
        response: { 204: z.void() },
      },
    },
    async ({ params: { id }, caller }, reply) => {
      const { keyId, scopes } = known(caller);
      const isDeleted = await deleteSavedView(keys.db, { id, keyId: scopes.has("admin") ? null : keyId });
      if (!isDeleted) throw notFound(`saved view ${id}`);
      return reply.code(204).send();
    },
  );
}

/** @throws {Refusal} 403 where a key that may only read would put something before everybody. */
function mayShare(caller: Caller | null, isShared: boolean): Caller {
  const asking = known(caller);
  if (isShared && !asking.scopes.has("act"))
    throw new Refusal(403, { detail: `${describeLack("act")} Sharing a view needs it.` });
  return asking;
}

function toView(row: SavedViewRow, { keyId, masked }: Caller): z.infer<typeof SavedView> {
  const { id, page, isShared, createdAt, changedAt } = row;
  const isOwn = row.keyId === keyId;
  // What others filtered for can be an address.
  const show = (text: string) => (masked && !isOwn ? maskText(text) : text);
  return {
    id,
    page,
    isShared,
    isOwn,
    name: show(row.name),
    state: show(row.state),
    createdBy: show(row.createdBy),
    createdAt: createdAt.toISOString(),
    changedAt: changedAt.toISOString(),
  };
}
