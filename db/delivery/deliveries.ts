import { count, desc, eq, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { DeliveryState } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { alerts } from "../schema/alerts.ts";
import { notifications } from "../schema/notifications.ts";
import { isDead, ORPHANED } from "./drop-notifications.ts";

const n = alias(notifications, "n");
const a = alias(alerts, "a");
const later = alias(notifications, "later");
const r = alias(notifications, "r");

export interface Delivery {
  readonly id: number;
  readonly alertId: number;
  readonly transition: number;
  readonly reason: string;
  readonly channel: string;
  readonly state: DeliveryState;
  readonly attempts: number;
  /** Epoch ms, as all times. */
  readonly createdAt: number;
  /** When the row is due, or when its attempt counts as lost; null once the row is final. */
  readonly nextAttemptAt: number | null;
  readonly deliveredAt: number | null;
  /** Null if the notification was sent alone. */
  readonly digestKey: string | null;
  /** The original channel of a copy on the fallback channel. */
  readonly standsInFor: string | null;
  readonly lastError: string | null;
  readonly headline: string | null;
}

const STATE = sql<DeliveryState>`case when ${n.state} <> 'undeliverable' then ${n.state}
  when ${isDead(n)} then 'dead' else 'needless' end`;
const wholeMs = (column: SQLWrapper) => sql<number>`floor(${epochMs(column)})`;

/** Selects deliveries. A member that is left out does not filter. */
export interface DeliveryFilter {
  readonly state?: DeliveryState | undefined;
  readonly channel?: string | undefined;
  readonly alertId?: number | undefined;
  /** Keeps alerts of these zones only. Null or left out keeps every zone and the alerts without a zone. */
  readonly zoneIds?: readonly number[] | null | undefined;
  /** Id of the last delivery of the previous page. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

/** Returns the matching deliveries, newest first. */
export function listDeliveries(db: Queryable, filter: DeliveryFilter): Promise<Delivery[]> {
  const { state, channel, alertId, zoneIds, beforeId, limit } = filter;
  return db
    .select({
      id: n.id,
      alertId: n.alertId,
      transition: n.transition,
      reason: n.reason,
      channel: n.channel,
      state: STATE,
      attempts: n.attempts,
      createdAt: wholeMs(n.createdAt),
      nextAttemptAt: sql<
        number | null
      >`case when ${n.state} in ('pending', 'sending') then ${wholeMs(n.nextAttemptAt)} end`,
      deliveredAt: sql<number | null>`${wholeMs(n.deliveredAt)}`,
      digestKey: sql<string | null>`nullif(${n.digestKey}, '')`,
      standsInFor: n.standsInFor,
      lastError: n.lastError,
      headline: sql<string | null>`${n.content} ->> 'headline'`,
    })
    .from(n)
    .where(
      sql`(${state ?? null}::text is null or ${STATE} = ${state ?? null})
      and (${channel ?? null}::text is null or ${n.channel} = ${channel ?? null})
      ${alertId === undefined ? sql`` : sql`and ${n.alertId} = ${alertId}`}
      ${beforeId === undefined ? sql`` : sql`and ${n.id} < ${beforeId}`}
      ${zoneIds == null ? sql`` : isOfZones(zoneIds)}`,
    )
    .orderBy(desc(n.id))
    .limit(limit);
}

function isOfZones(zoneIds: readonly number[]): SQL {
  return sql`and exists (select from ${alerts} ${a}
    where ${a.id} = ${n.alertId} and ${a.zoneId} = any(${sql.param([...zoneIds])}::integer[]))`;
}

/** Returns the zone of a delivery's alert, null if the alert has no zone, undefined if there is no such delivery. */
export async function readDeliveryZone(db: Queryable, id: number): Promise<number | null | undefined> {
  const [row] = await db
    .select({ zoneId: a.zoneId })
    .from(n)
    .innerJoin(a, eq(a.id, n.alertId))
    .where(eq(n.id, id));
  return row?.zoneId;
}

const IS_OUTDATED = sql`exists (select from ${notifications} ${later}
  where ${later.alertId} = ${n.alertId} and ${later.channel} = ${n.channel} and ${later.transition} > ${n.transition}
    and ${later.state} in ('delivered', 'sending') and ${later.reason} <> 'advice')`;

export interface Replayed {
  readonly replayed: number;
  /** Dead deliveries that a later message to the same channel has superseded. */
  readonly outdated: number;
  /** Requested deliveries that are not dead. */
  readonly notDead: number;
}

/**
 * Makes dead deliveries due again under their own dedupe keys: one by id, or all of a channel. With a firing, also
 * the resolve that was dropped because the firing never arrived. A delivery that a newer message has superseded stays
 * dead, because a replay must not return a receiver to an older state.
 */
export async function replayDeliveries(
  db: Queryable,
  which: { readonly id: number } | { readonly channel: string },
): Promise<Replayed> {
  const asked =
    "id" in which ? sql`${n.id} = ${which.id}` : sql`${n.channel} = ${which.channel} and ${isDead(n)}`;
  const { rows } = await db.execute<{ [Key in keyof Replayed]: Replayed[Key] }>(sql`
    with asked as materialized (
      select ${n.id}, ${n.alertId}, ${n.channel}, ${n.transition}, ${isDead(n)} as is_dead,
        ${IS_OUTDATED} as is_outdated
      from ${notifications} ${n} where ${asked} order by ${n.id} for update of ${n}),
    again as (
      select id from asked where is_dead and not is_outdated
      union
      select ${r.id} from ${notifications} ${r} join asked a on a.alert_id = ${r.alertId} and a.channel = ${r.channel}
        and a.transition < ${r.transition}
      where a.is_dead and not a.is_outdated and ${r.state} = 'undeliverable' and ${r.lastError} = ${ORPHANED}),
    due as (
      update ${notifications} ${n} set ${names(n.state)} = 'pending', ${names(n.nextAttemptAt)} = now(),
        ${names(n.replayedAt)} = now(), ${names(n.lastError)} = null, ${names(n.digestKey)} = null
      from again where ${n.id} = again.id returning ${n.id})
    select (select count(*) from due)::integer as replayed,
      count(*) filter (where is_dead and is_outdated)::integer as outdated,
      count(*) filter (where not is_dead)::integer as "notDead"
    from asked`);
  return rows[0] ?? { replayed: 0, outdated: 0, notDead: 0 };
}

/**
 * Returns how many deliveries written since `sinceMs` were given up, without those that a later message has
 * superseded.
 */
export async function countGivenUp(db: Queryable, sinceMs: number): Promise<number> {
  const [row] = await db
    .select({ givenUp: count() })
    .from(n)
    .where(sql`${n.createdAt} >= ${new Date(sinceMs)} and ${isDead(n)} and not ${IS_OUTDATED}`);
  return row?.givenUp ?? 0;
}
