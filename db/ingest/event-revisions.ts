import { and, type SQL, sql } from "drizzle-orm";
import type { EventKey } from "#model/waf-event.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { eventRevisions } from "../schema/events.ts";

const r = eventRevisions;

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
export function listEventRevisions(
  db: Queryable,
  zoneId: number,
  { logId, occurredAt }: EventKey,
  limit: number,
): Promise<EventRevision[]> {
  return db
    .select({
      field: r.field,
      before: r.before,
      after: r.after,
      seenAt: epochMs(r.seenAt),
      acceptedAt: epochMs(r.acceptedAt),
    })
    .from(r)
    .where(
      sql`${r.zoneId} = ${zoneId} and ${isNear(occurredAt, occurredAt)} and ${r.logId} = ${logId}
        and ${r.field} <> 'removed' and (${r.field} <> 'withdrawn' or ${r.occurredAt} = ${new Date(occurredAt)})`,
    )
    .orderBy(sql`${r.field} <> 'withdrawn', ${r.seenAt} desc`)
    .limit(limit);
}

/** Deletes the former values of events, also those that were noted under a second time. */
export async function forgetValues(
  tx: Queryable,
  zoneId: number,
  { firstAt, lastAt, logIds }: { firstAt: number; lastAt: number; logIds: readonly string[] },
): Promise<void> {
  const isOne = sql`${r.logId} = any(${sql.param(logIds)}::text[])`;
  await tx.delete(r).where(and(isFormer(zoneId, { firstAt, lastAt }), isOne));
}

/** Returns the log ids of a span (epoch ms, both ends included) that have a former value. */
export async function listRevisedIds(
  db: Queryable,
  zoneId: number,
  { firstAt, lastAt }: { firstAt: number; lastAt: number },
): Promise<string[]> {
  const rows = await db
    .selectDistinct({ logId: r.logId })
    .from(r)
    .where(isFormer(zoneId, { firstAt, lastAt }));
  return rows.map(({ logId }) => logId);
}

function isFormer(zoneId: number, { firstAt, lastAt }: { firstAt: number; lastAt: number }): SQL {
  return sql`${r.zoneId} = ${zoneId} and ${r.field} not in ('withdrawn', 'removed') and ${isNear(firstAt, lastAt)}`;
}

function isNear(firstAt: number, lastAt: number): SQL {
  return sql`${r.occurredAt} between ${new Date(firstAt)}::timestamptz - ${MERGED}
    and ${new Date(lastAt)}::timestamptz + ${MERGED}`;
}
