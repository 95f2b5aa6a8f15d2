import { desc, eq, gte, isNull, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { AddressFamily } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names, overwriting } from "../postgres/terms.ts";
import { archiveFiles } from "../schema/archive.ts";
import { auditEntries } from "../schema/people.ts";
import { type ErasedCounts, erasures } from "../schema/privacy.ts";

const x = alias(erasures, "x");
const t = alias(auditEntries, "t");
const f = alias(archiveFiles, "f");
const excluded = alias(erasures, "excluded");

export interface NewErasure {
  /** Epoch ms. */
  readonly requestedAt: number;
  readonly untilAt: number;
  readonly zoneId: number | null;
  readonly family: AddressFamily;
  readonly prefix: number;
  readonly keyId: string;
  readonly hash: Buffer;
  readonly masked: { readonly prefix: number; readonly hash: Buffer } | null;
}

export interface OpenedErasure {
  readonly id: number;
  readonly untilAt: number;
  /** True if the erasure was begun before and not finished. */
  readonly isResumed: boolean;
}

const NOTHING_ERASED: ErasedCounts = {
  events: 0,
  records: 0,
  quarantined: 0,
  spikes: 0,
  alerts: 0,
  notifications: 0,
  advice: 0,
  silences: 0,
};

/** Begins an erasure, or resumes the one of the same address. The events that it covers can only increase. */
export async function openErasure(tx: Queryable, erasure: NewErasure): Promise<OpenedErasure> {
  const { zoneId, family, prefix, keyId, hash, masked } = erasure;
  const [requestedAt, untilAt] = [new Date(erasure.requestedAt), new Date(erasure.untilAt)];
  const before = await tx
    .select({ endedAt: x.endedAt })
    .from(x)
    .where(
      sql`${x.zoneId} is not distinct from ${zoneId}::integer and ${x.keyId} = ${keyId} and ${x.hash} = ${hash}
        and ${x.includeMasked} = ${masked !== null}`,
    )
    .for("update");
  const { rows } = await tx.execute<{ id: string; untilAt: number }>(sql`
    insert into ${erasures} as ${x} (${names(x.requestedAt, x.untilAt, x.zoneId, x.family, x.prefix, x.includeMasked)},
      ${names(x.keyId, x.hash, x.maskedHash, x.maskedPrefix, x.counts)})
    values (${requestedAt}, ${untilAt}, ${zoneId}, ${family}, ${prefix}, ${masked !== null}, ${keyId}, ${hash},
      ${masked?.hash ?? null}, ${masked?.prefix ?? null}, ${JSON.stringify(NOTHING_ERASED)}::jsonb)
    on conflict on constraint erasures_once do update set ${overwriting(x.requestedAt)},
      ${names(x.untilAt)} = greatest(${x.untilAt}, ${excluded.untilAt}), ${names(x.endedAt)} = null,
      ${names(x.counts)} = case when ${x.endedAt} is null then ${x.counts} else ${excluded.counts} end
    returning ${x.id}, ${epochMs(x.untilAt)} as "untilAt"`);
  const row = rows[0];
  if (row === undefined) throw new Error("an erasure was neither begun nor taken up");
  return { ...row, id: Number(row.id), isResumed: before.some(({ endedAt }) => endedAt === null) };
}

/** Adds the counts of a part of the work, in the transaction of that part. */
export async function addErased(tx: Queryable, id: number, more: Partial<ErasedCounts>): Promise<void> {
  const counts = JSON.stringify({ ...NOTHING_ERASED, ...more });
  await tx
    .update(x)
    .set({
      counts: sql`(select jsonb_object_agg(key, coalesce((${x.counts} ->> key)::bigint, 0) + value::bigint)
        from jsonb_each_text(${counts}::jsonb))`,
    })
    .where(eq(x.id, id));
}

/** Returns the totals of the whole erasure, since it began. */
export async function endErasure(tx: Queryable, id: number, nowMs: number): Promise<ErasedCounts> {
  const [row] = await tx
    .update(x)
    .set({ endedAt: new Date(nowMs) })
    .where(eq(x.id, id))
    .returning({ counts: x.counts });
  return row?.counts ?? NOTHING_ERASED;
}

/** Returns the number of erasures whose tombstones are in effect or that are not finished. */
export function countErasuresInEffect(db: Queryable, sinceMs: number): Promise<number> {
  return db.$count(erasures, or(isNull(erasures.endedAt), gte(erasures.untilAt, new Date(sinceMs))));
}

/** A file of the archive that still holds erased events. */
export interface RemainingFile {
  readonly path: string;
  /** Null if the file could not be read. */
  readonly events: number | null;
  /** When the service will have deleted the file, if it runs; epoch ms. */
  readonly until: number;
  /** Why the file was not deleted; null if only the caches of other processes may have it. */
  readonly problem: string | null;
}

/** Returns the files that remain of the last erasures. Each erasure has named its own in the audit trail. */
export async function listRemaining(db: Queryable, nowMs: number): Promise<RemainingFile[]> {
  const { rows } = await db.execute<{ [Key in keyof RemainingFile]: RemainingFile[Key] }>(sql`
    select distinct on (r.path) r.path, r.events, r.until, r.problem from ${auditEntries} ${t}
    cross join jsonb_to_recordset(${t.details} -> 'remaining') as r(path text, events integer, until float8, problem text)
    where ${t.action} = 'erasure.completed' and jsonb_typeof(${t.details} -> 'remaining') = 'array'
      and case when r.problem is null then r.until > ${nowMs}
        else exists (select from ${archiveFiles} ${f} where ${f.path} = r.path) end
    order by r.path, ${t.id} desc`);
  return rows;
}

export interface EndedErasure {
  readonly id: number;
  readonly requestedAt: number;
  readonly untilAt: number;
  readonly isFinished: boolean;
  /** The actor as in the audit trail. */
  readonly actor: string | null;
  readonly reason: string | null;
}

/**
 * Ends every erasure of a key that is lost: an unfinished erasure cannot continue, and one that covers later events
 * cannot recognise them any more. Returns the erasures of these two kinds as they were.
 */
export async function endErasuresOf(tx: Queryable, keyId: string, nowMs: number): Promise<EndedErasure[]> {
  const now = new Date(nowMs);
  const { rows } = await tx.execute<{ [Key in keyof EndedErasure]: EndedErasure[Key] }>(sql`
    with before as (
      select * from ${erasures} ${x}
      where ${x.keyId} = ${keyId} and (${x.endedAt} is null or ${x.untilAt} > ${now}) for update),
    ended as (
      update ${erasures} ${x} set ${names(x.untilAt)} = least(${x.untilAt}, ${now}),
        ${names(x.endedAt)} = coalesce(${x.endedAt}, ${now})
      from before b where b.id = ${x.id})
    select b.id::float8 as id, ${epochMs(sql`b.requested_at`)} as "requestedAt",
      ${epochMs(sql`b.until_at`)} as "untilAt", b.ended_at is not null as "isFinished",
      a.actor, a.details ->> 'reason' as reason
    from before b left join lateral (
      select ${t.actor}, ${t.details} from ${auditEntries} ${t}
      where ${t.action} = 'erasure.requested' and ${t.details} ->> 'erasure' = b.id::text
      order by ${t.id} desc limit 1) a on true
    order by b.id`);
  return rows;
}

/** Returns when the last tombstone in effect ends; epoch ms, null if there is none. */
export async function lastErasureUntil(db: Queryable): Promise<number | null> {
  const [row] = await db.select({ at: epochMs(sql<string | null>`max(${erasures.untilAt})`) }).from(erasures);
  return row?.at ?? null;
}

export interface ListedErasure {
  readonly id: number;
  /** Epoch ms. */
  readonly requestedAt: number;
  readonly untilAt: number;
  readonly endedAt: number | null;
  readonly zone: number | null;
  readonly family: number;
  readonly prefix: number;
  readonly counts: ErasedCounts;
}

/** Returns the newest erasures. None says which address it covers. */
export function listErasures(db: Queryable, limit: number): Promise<ListedErasure[]> {
  return db
    .select({
      id: x.id,
      requestedAt: epochMs(x.requestedAt),
      untilAt: epochMs(x.untilAt),
      endedAt: epochMs(x.endedAt),
      zone: x.zoneId,
      family: x.family,
      prefix: x.prefix,
      counts: x.counts,
    })
    .from(x)
    .orderBy(desc(x.id))
    .limit(limit);
}
