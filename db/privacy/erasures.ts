import { sql } from "drizzle-orm";
import type { AddressFamily } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import type { ErasedCounts } from "../schema/erasures.ts";

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
  const { rows: before } = await tx.execute<{ endedAt: Date | null }>(sql`
    select ended_at as "endedAt" from erasures
    where zone_id is not distinct from ${zoneId}::integer and key_id = ${keyId} and hash = ${hash}
      and include_masked = ${masked !== null} for update`);
  const { rows } = await tx.execute<{ id: string; untilAt: number }>(sql`
    insert into erasures as e (requested_at, until_at, zone_id, family, prefix, include_masked, key_id, hash,
      masked_hash, masked_prefix, counts)
    values (${requestedAt}, ${untilAt}, ${zoneId}, ${family}, ${prefix}, ${masked !== null}, ${keyId}, ${hash},
      ${masked?.hash ?? null}, ${masked?.prefix ?? null}, ${JSON.stringify(NOTHING_ERASED)}::jsonb)
    on conflict on constraint erasures_once do update set requested_at = excluded.requested_at,
      until_at = greatest(e.until_at, excluded.until_at), ended_at = null,
      counts = case when e.ended_at is null then e.counts else excluded.counts end
    returning id, (extract(epoch from until_at) * 1000)::float8 as "untilAt"`);
  const row = rows[0];
  if (row === undefined) throw new Error("an erasure was neither begun nor taken up");
  return { ...row, id: Number(row.id), isResumed: before.some(({ endedAt }) => endedAt === null) };
}

/** Adds the counts of a part of the work, in the transaction of that part. */
export async function addErased(tx: Queryable, id: number, more: Partial<ErasedCounts>): Promise<void> {
  const counts = JSON.stringify({ ...NOTHING_ERASED, ...more });
  await tx.execute(sql`
    update erasures e set counts = (
      select jsonb_object_agg(key, coalesce((e.counts ->> key)::bigint, 0) + value::bigint)
      from jsonb_each_text(${counts}::jsonb))
    where id = ${id}`);
}

/** Returns the totals of the whole erasure, since it began. */
export async function endErasure(tx: Queryable, id: number, nowMs: number): Promise<ErasedCounts> {
  const { rows } = await tx.execute<{ counts: ErasedCounts }>(sql`
    update erasures set ended_at = ${new Date(nowMs)} where id = ${id} returning counts`);
  return rows[0]?.counts ?? NOTHING_ERASED;
}

/** Returns the number of erasures whose tombstones are in effect or that are not finished. */
export async function countErasuresInEffect(db: Queryable, sinceMs: number): Promise<number> {
  const { rows } = await db.execute<{ count: number }>(sql`
    select count(*)::integer as count from erasures where ended_at is null or until_at >= ${new Date(sinceMs)}`);
  return rows[0]?.count ?? 0;
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
      select * from erasures where key_id = ${keyId} and (ended_at is null or until_at > ${now}) for update),
    ended as (
      update erasures e set until_at = least(e.until_at, ${now}), ended_at = coalesce(e.ended_at, ${now})
      from before b where b.id = e.id)
    select b.id::float8 as id, (extract(epoch from b.requested_at) * 1000)::float8 as "requestedAt",
      (extract(epoch from b.until_at) * 1000)::float8 as "untilAt", b.ended_at is not null as "isFinished",
      a.actor, a.details ->> 'reason' as reason
    from before b left join lateral (
      select actor, details from audit_entries
      where action = 'erasure.requested' and details ->> 'erasure' = b.id::text
      order by id desc limit 1) a on true
    order by b.id`);
  return rows;
}

/** Returns when the last tombstone in effect ends; epoch ms, null if there is none. */
export async function lastErasureUntil(db: Queryable): Promise<number | null> {
  const { rows } = await db.execute<{ at: number | null }>(
    sql`select (extract(epoch from max(until_at)) * 1000)::float8 as at from erasures`,
  );
  return rows[0]?.at ?? null;
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
export async function listErasures(db: Queryable, limit: number): Promise<ListedErasure[]> {
  const ms = (column: string) => sql.raw(`(extract(epoch from ${column}) * 1000)::float8`);
  const { rows } = await db.execute<{ [Key in keyof ListedErasure]: ListedErasure[Key] }>(sql`
    select id::float8 as id, ${ms("requested_at")} as "requestedAt", ${ms("until_at")} as "untilAt",
      ${ms("ended_at")} as "endedAt", zone_id as zone, family, prefix, counts
    from erasures order by id desc limit ${limit}`);
  return rows;
}
