import { z } from "zod";
import { maskText } from "#archive/rules/mask.ts";
import {
  deleteSavedView,
  insertSavedView,
  listSavedViews,
  type SavedViewRow,
  updateSavedView,
} from "#db/people/sessions.ts";
import { describeLack } from "#model/roles.ts";
import type { Caller } from "#operations/caller.ts";
import { IsoTime, lineOf, Name, notFound, pageOf, pageQuery, RowId, toPage } from "#operations/fields.ts";
import { defineChange, defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";

const TAG = "Service";
const PATH = "/api/v1/views";
const MOST_PER_KEY = 200;
const MAX_STATE_CHARS = 4_000;

const BODY = {
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
};

const SavedView = z
  .object({
    id: z.number().int(),
    name: Name,
    page: Name,
    state: Name,
    isShared: z.boolean(),
    isOwn: z.boolean().describe("Whether this key may change it."),
    createdBy: Name,
    createdAt: IsoTime,
    changedAt: IsoTime,
  })
  .meta({ id: "SavedView", masked: maskOfOthers });

type SavedView = z.infer<typeof SavedView>;

const list = defineQuery({
  name: "views.list",
  summary: "List saved views, oldest first",
  http: ["GET", PATH],
  tag: TAG,
  scope: "read",
  input: z.strictObject(pageQuery({ fallback: 100, most: 500 })),
  output: pageOf(SavedView),
  isForPages: true,
  run: async ({ db, caller, cursors }, { limit, after }) => {
    const [afterId = 0] = cursors.readAfter("views", after) ?? [];
    const rows = await listSavedViews(db, {
      keyId: caller.keyId,
      afterId: Number(afterId),
      limit: limit + 1,
    });
    return toPage(
      rows,
      limit,
      (row) => toView(row, caller),
      ({ id }) => cursors.sign("views", [id]),
    );
  },
});

/** A view changes what one key's owner sees, so the audit trail has no entry of it. */
const NO_ENTRY = null;

const save = defineChange({
  name: "views.save",
  summary: "Save a view",
  http: ["POST", PATH],
  tag: TAG,
  scope: "read",
  refuses: [409],
  input: z.strictObject(BODY),
  output: SavedView,
  created: ({ id }) => `${PATH}/${id}`,
  run: async ({ tx, caller }, view) => {
    mayShare(caller, view.isShared);
    const added = { ...view, keyId: caller.keyId, createdBy: caller.name };
    const row = await insertSavedView(tx, added, MOST_PER_KEY);
    if (row === null)
      throw new Refusal(409, {
        slug: "too-many-views",
        detail: `This key already has ${MOST_PER_KEY} saved views. Delete one first.`,
      });
    return { output: toView(row, caller), audit: NO_ENTRY };
  },
});

const replace = defineChange({
  name: "views.replace",
  summary: "Change a saved view",
  http: ["PUT", `${PATH}/:id`],
  tag: TAG,
  scope: "read",
  input: z.strictObject({ id: RowId, ...BODY }),
  output: SavedView,
  run: async ({ tx, caller }, view) => {
    mayShare(caller, view.isShared);
    const row = await updateSavedView(tx, { ...view, keyId: caller.keyId });
    if (row === null) throw notFound(`saved view ${view.id}`);
    return { output: toView(row, caller), audit: NO_ENTRY };
  },
});

const remove = defineChange({
  name: "views.delete",
  summary: "Delete a saved view",
  description: "An admin key may delete the views of every key.",
  http: ["DELETE", `${PATH}/:id`],
  tag: TAG,
  scope: "read",
  input: z.strictObject({ id: RowId }),
  output: z.void(),
  run: async ({ tx, caller: { keyId, scopes } }, { id }) => {
    const isDeleted = await deleteSavedView(tx, { id, keyId: scopes.has("admin") ? null : keyId });
    if (!isDeleted) throw notFound(`saved view ${id}`);
    return { output: undefined, audit: NO_ENTRY };
  },
});

export const viewOperations = [list, save, replace, remove];

/** @throws {Refusal} 403 if a key that may only read shares a view with every key */
function mayShare({ scopes }: Caller, isShared: boolean): void {
  if (isShared && !scopes.has("act"))
    throw new Refusal(403, { detail: `${describeLack("act")} Sharing a view needs it.` });
}

/** Masks the view of another key, because its filters can hold an address. The owner of a view sees it whole. */
function maskOfOthers(view: {
  readonly isOwn: boolean;
  readonly name: string;
  readonly state: string;
  readonly createdBy: string;
}): object {
  if (view.isOwn) return view;
  const { name, state, createdBy } = view;
  return { ...view, name: maskText(name), state: maskText(state), createdBy: maskText(createdBy) };
}

function toView({ keyId, createdAt, changedAt, ...row }: SavedViewRow, caller: Caller): SavedView {
  const { id, name, page, state, isShared, createdBy } = row;
  const times = { createdAt: createdAt.toISOString(), changedAt: changedAt.toISOString() };
  return { id, name, page, state, isShared, createdBy, ...times, isOwn: keyId === caller.keyId };
}
