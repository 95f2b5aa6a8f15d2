import { and, eq, lt, lte, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { PassResult } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { FenceLostError } from "../postgres/leases.ts";
import { names } from "../postgres/terms.ts";
import { ingestCursors, pages } from "../schema/ingest.ts";

const ic = alias(ingestCursors, "ic");
const p = alias(pages, "p");

/** State of the list pass over one zone's UTC day (`yyyy-mm-dd`); times in epoch ms. */
export interface ListPass {
  readonly pass: number;
  readonly pagesSeen: number;
  readonly newEntries: number;
  readonly startedAt: number;
  readonly continuationToken: string | null;
  /** Token of the first of the last pages of a list that comes oldest first; null while that is not known. */
  readonly tailToken: string | null;
  /** True if the pass began at the last pages. Such a pass proves nothing. */
  readonly beganAtTail: boolean;
  /** Start of the latest full pass that reached the end. */
  readonly fullPassStartedAt: number | null;
  /** Start of the latest full pass that found nothing new. */
  readonly quietPassStartedAt: number | null;
  /** Null while the pass runs. */
  readonly passResult: PassResult | null;
}

/** Returns the latest pass of this day as it was last committed, or null when there never was one. */
export async function readListPass(db: Queryable, zoneId: number, day: string): Promise<ListPass | null> {
  const [row] = await db.select().from(ingestCursors).where(isCursor(zoneId, day));
  if (row === undefined) return null;
  const { pass, pagesSeen, newEntries, continuationToken, tailToken, beganAtTail, passResult } = row;
  return {
    pass,
    pagesSeen,
    newEntries,
    continuationToken,
    tailToken,
    beganAtTail,
    passResult,
    startedAt: row.startedAt.getTime(),
    fullPassStartedAt: row.fullPassStartedAt?.getTime() ?? null,
    quietPassStartedAt: row.quietPassStartedAt?.getTime() ?? null,
  };
}

/**
 * Begins the next pass over a day: at the first page, or with `atTail` at the last page, if its token is known. The
 * ledger of the previous pass stays.
 */
export async function beginListPass(
  db: Queryable,
  zoneId: number,
  day: string,
  { fence, startedAt, atTail }: { fence: number; startedAt: number; atTail: boolean },
): Promise<ListPass> {
  const startsAt = new Date(startedAt);
  const started = await db
    .insert(ingestCursors)
    .values({ zoneId, day, fence, startedAt: startsAt })
    .onConflictDoUpdate({
      target: [ingestCursors.zoneId, ingestCursors.day],
      set: {
        fence,
        startedAt: startsAt,
        pass: sql`${ingestCursors.pass} + 1`,
        pagesSeen: 0,
        newEntries: 0,
        continuationToken: atTail ? ingestCursors.tailToken : null,
        beganAtTail: atTail ? sql`${ingestCursors.tailToken} is not null` : false,
        passResult: null,
      },
      setWhere: lte(ingestCursors.fence, fence),
    })
    .returning({ day: ingestCursors.day });
  const pass = started.length === 0 ? null : await readListPass(db, zoneId, day);
  if (pass === null) throw new FenceLostError(`list pass of ${day}`, fence);
  return pass;
}

/** Returns whether a page with exactly these bytes was stored in an earlier pass of this day. */
export async function isKnownPage(
  db: Queryable,
  zoneId: number,
  day: string,
  hash: Buffer,
): Promise<boolean> {
  const found = await db
    .select({ page: pages.page })
    .from(pages)
    .where(and(eq(pages.zoneId, zoneId), eq(pages.day, day), eq(pages.hash, hash)))
    .limit(1);
  return found.length > 0;
}

export interface ReadPage {
  readonly zoneId: number;
  readonly day: string;
  readonly entries: number;
  readonly newEntries: number;
  readonly hash: Buffer;
  readonly tokenHash: Buffer | null;
  readonly firstAt: number | null;
  readonly lastAt: number | null;
  /** Per hour (epoch ms of its start): number of events that are new to the pass, and the digest of their log ids. */
  readonly hours: readonly (readonly [startsAt: number, count: number, ids: string])[];
  /** Token of the next page; null at the end of the pass. */
  readonly nextToken: string | null;
  /** Set on the pass's last page. */
  readonly passResult: PassResult | null;
  /** On the pass's last page: where the next short pass begins. */
  readonly tailToken: string | null;
}

/**
 * Adds the pass's next page to the ledger and moves the cursor one step, if the cursor is still where `before` saw
 * it. At the end of a full pass, deletes the ledger of earlier passes, which is of no more use.
 * @throws {FenceLostError} when another process has moved the cursor.
 */
export async function recordListPage(
  db: Queryable,
  before: ListPass,
  fence: number,
  page: ReadPage,
): Promise<ListPass> {
  const { zoneId, day, entries, hash, tokenHash, passResult } = page;
  const at = (time: number | null) => (time === null ? null : new Date(time).toISOString());
  const newEntries = before.newEntries + page.newEntries;
  const isFull = passResult === "full";
  const isUnchanged = isFull && newEntries === 0;
  const tailToken = passResult === null ? before.tailToken : page.tailToken;
  // One statement, so that no ledger row is written if the cursor has moved.
  const moved = await db.execute(sql`
    with moved as (
      update ${ingestCursors} ${ic} set ${names(ic.fence)} = ${fence}, ${names(ic.newEntries)} = ${newEntries},
        ${names(ic.pagesSeen)} = ${ic.pagesSeen} + 1, ${names(ic.continuationToken)} = ${page.nextToken},
        ${names(ic.tailToken)} = ${tailToken}, ${names(ic.passResult)} = ${passResult},
        ${names(ic.fullPassStartedAt)} = case when ${isFull} then ${ic.startedAt} else ${ic.fullPassStartedAt} end,
        ${names(ic.quietPassStartedAt)} = case when ${isUnchanged} then ${ic.startedAt} else ${ic.quietPassStartedAt} end
      where ${ic.zoneId} = ${zoneId} and ${ic.day} = ${day} and ${ic.fence} <= ${fence}
        and ${ic.pass} = ${before.pass} and ${ic.pagesSeen} = ${before.pagesSeen}
      returning ${ic.pass})
    insert into ${pages} (${names(p.zoneId, p.day, p.pass, p.page, p.entries, p.newEntries)},
      ${names(p.hash, p.tokenHash, p.firstAt, p.lastAt, p.hours)})
    select ${zoneId}, ${day}, pass, ${before.pagesSeen}, ${entries}, ${page.newEntries}, ${hash}::bytea,
      ${tokenHash}::bytea, ${at(page.firstAt)}::timestamptz, ${at(page.lastAt)}::timestamptz,
      ${JSON.stringify(page.hours)}::jsonb
    from moved`);
  if (moved.rowCount === 0) throw new FenceLostError(`list pass of ${day}`, fence);
  if (isFull) {
    await db
      .delete(pages)
      .where(and(eq(pages.zoneId, zoneId), eq(pages.day, day), lt(pages.pass, before.pass)));
  }
  return {
    ...before,
    newEntries,
    pagesSeen: before.pagesSeen + 1,
    continuationToken: page.nextToken,
    tailToken,
    passResult,
    fullPassStartedAt: isFull ? before.startedAt : before.fullPassStartedAt,
    quietPassStartedAt: isUnchanged ? before.startedAt : before.quietPassStartedAt,
  };
}

/** Returns the hours of each page of a pass, in order. */
export async function readPassHours(
  db: Queryable,
  zoneId: number,
  day: string,
  pass: number,
): Promise<ReadPage["hours"][]> {
  const rows = await db
    .select({ hours: pages.hours })
    .from(pages)
    .where(and(eq(pages.zoneId, zoneId), eq(pages.day, day), eq(pages.pass, pass)))
    .orderBy(pages.page);
  return rows.flatMap(({ hours }) => (hours === null ? [] : [hours]));
}

/** Ends a pass that cannot go on. The next pass begins at the first page. */
export async function breakListPass(
  db: Queryable,
  zoneId: number,
  day: string,
  { pass, fence, passResult }: { pass: number; fence: number; passResult: "token_rejected" | "held" },
): Promise<void> {
  await db
    .update(ingestCursors)
    .set({ passResult, continuationToken: null, tailToken: null })
    .where(and(isCursor(zoneId, day), eq(ingestCursors.pass, pass), lte(ingestCursors.fence, fence)));
}

function isCursor(zoneId: number, day: string) {
  return and(eq(ingestCursors.zoneId, zoneId), eq(ingestCursors.day, day));
}
