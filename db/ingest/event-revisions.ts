import { type SQL, sql } from "drizzle-orm";
import type { EventKey } from "#model/event-key.ts";
import type { Queryable } from "../client.ts";

/** Two times of one event that were merged are at most this far apart. */
const MERGED = sql.raw("interval '25 hours'");

/** Another value of an event that the search showed, or that it did not show the event (`withdrawn`); times in epoch ms. */
export interface EventRevision {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
  readonly seenAt: number;
  /** Null while no second look has confirmed it. */
  readonly acceptedAt: number | null;
}

/** Returns the newest revisions of an event, also those that were noted under a second time. `withdrawn` comes first. */
export async function listEventRevisions(
  db: Queryable,
  zoneId: number,
  { logId, occurredAt }: EventKey,
  limit: number,
): Promise<EventRevision[]> {
  const { rows } = await db.execute<{ [Key in keyof EventRevision]: EventRevision[Key] }>(sql`
    select field, before, after, (extract(epoch from seen_at) * 1000)::float8 as "seenAt",
      (extract(epoch from accepted_at) * 1000)::float8 as "acceptedAt"
    from event_revisions
    where zone_id = ${zoneId} and ${isNear(occurredAt, occurredAt)} and log_id = ${logId}
      and field <> 'removed' and (field <> 'withdrawn' or occurred_at = ${new Date(occurredAt)})
    order by field <> 'withdrawn', seen_at desc limit ${limit}`);
  return rows;
}

/** Deletes the former values of events, also those that were noted under a second time. */
export async function forgetValues(
  tx: Queryable,
  zoneId: number,
  { firstAt, lastAt, logIds }: { firstAt: number; lastAt: number; logIds: readonly string[] },
): Promise<void> {
  await tx.execute(sql`
    delete from event_revisions
    where zone_id = ${zoneId} and log_id = any(${sql.param(logIds)}::text[]) and field not in ('withdrawn', 'removed')
      and ${isNear(firstAt, lastAt)}`);
}

/** Returns the log ids of a span (epoch ms, both ends included) that have a former value. */
export async function listRevisedIds(
  db: Queryable,
  zoneId: number,
  { firstAt, lastAt }: { firstAt: number; lastAt: number },
): Promise<string[]> {
  const { rows } = await db.execute<{ logId: string }>(sql`
    select distinct log_id as "logId" from event_revisions
    where zone_id = ${zoneId} and field not in ('withdrawn', 'removed') and ${isNear(firstAt, lastAt)}`);
  return rows.map(({ logId }) => logId);
}

function isNear(firstAt: number, lastAt: number): SQL {
  return sql`occurred_at between ${new Date(firstAt)}::timestamptz - ${MERGED} and ${new Date(lastAt)}::timestamptz + ${MERGED}`;
}
