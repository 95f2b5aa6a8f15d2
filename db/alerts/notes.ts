import { and, desc, eq, gte, inArray, isNull, lt, or, sql } from "drizzle-orm";
import type { Note } from "#model/words.ts";
import type { Queryable } from "../client.ts";
import { notes } from "../schema/alerts.ts";

export type NoteRow = typeof notes.$inferSelect;

/** Stores a note. Returns the earlier one, with `isNew` false, if its source has sent it before. */
export async function insertNote(
  tx: Queryable,
  note: Omit<typeof notes.$inferInsert, "id" | "createdAt">,
): Promise<{ readonly row: NoteRow; readonly isNew: boolean }> {
  const [added] = await tx.insert(notes).values(note).onConflictDoNothing().returning();
  if (added !== undefined) return { row: added, isNew: true };
  const [known] = await tx
    .select()
    .from(notes)
    .where(eq(notes.source, note.source ?? ""));
  if (known === undefined) throw new Error("a note was neither added nor known");
  return { row: known, isNew: false };
}

export interface NoteFilter {
  /** Notes of these zones, and those of all zones. Null: every note. */
  readonly zoneIds: readonly number[] | null;
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  /** The last note of the page before. */
  readonly after?: { readonly atMs: number; readonly id: number } | undefined;
  readonly limit: number;
}

/** Returns notes, the newest first. */
export function listNotes(db: Queryable, filter: NoteFilter): Promise<NoteRow[]> {
  const { zoneIds, sinceMs, untilMs, after, limit } = filter;
  const isBehind =
    after &&
    sql`(${notes.at}, ${notes.id}) < (to_timestamp(${after.atMs}::float8 / 1000), ${after.id}::bigint)`;
  return db
    .select()
    .from(notes)
    .where(
      and(
        zoneIds === null ? undefined : or(isNull(notes.zoneId), inArray(notes.zoneId, [...zoneIds])),
        sinceMs === undefined ? undefined : gte(notes.at, new Date(sinceMs)),
        untilMs === undefined ? undefined : lt(notes.at, new Date(untilMs)),
        isBehind,
      ),
    )
    .orderBy(desc(notes.at), desc(notes.id))
    .limit(limit);
}

/** Deletes a note of these zones. Returns null if there is none. */
export async function deleteNote(
  tx: Queryable,
  id: number,
  zoneIds: readonly number[] | null,
): Promise<NoteRow | null> {
  const isOwn = zoneIds === null ? undefined : inArray(notes.zoneId, [...zoneIds]);
  const [row] = await tx
    .delete(notes)
    .where(and(eq(notes.id, id), isOwn))
    .returning();
  return row ?? null;
}

/** Returns the notes of a span as alerts and verdicts read them; at most 1,000, the newest. */
export async function readNotes(db: Queryable, fromMs: number, toMs: number): Promise<Note[]> {
  const rows = await listNotes(db, { zoneIds: null, sinceMs: fromMs, untilMs: toMs, limit: 1_000 });
  return rows.map(({ at, zoneId, text }) => ({ atMs: at.getTime(), zoneId, text }));
}
