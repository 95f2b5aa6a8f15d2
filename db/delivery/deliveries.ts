import { type SQL, sql } from "drizzle-orm";
import type { DeliveryState } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { isDead, ORPHANED } from "../service/last-errors.ts";

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

const STATE = sql`case when n.state <> 'undeliverable' then n.state when ${isDead(sql`n`)} then 'dead' else 'needless' end`;
const ms = (column: SQL) => sql`floor(extract(epoch from ${column}) * 1000)::float8`;

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
export async function listDeliveries(db: Queryable, filter: DeliveryFilter): Promise<Delivery[]> {
  const { state, channel, alertId, zoneIds, beforeId, limit } = filter;
  const { rows } = await db.execute<{ [Key in keyof Delivery]: Delivery[Key] }>(sql`
    select n.id::float8 as id, n.alert_id::float8 as "alertId", n.transition, n.reason, n.channel, ${STATE} as state,
      n.attempts, ${ms(sql`n.created_at`)} as "createdAt",
      case when n.state in ('pending', 'sending') then ${ms(sql`n.next_attempt_at`)} end as "nextAttemptAt",
      ${ms(sql`n.delivered_at`)} as "deliveredAt", nullif(n.digest_key, '') as "digestKey",
      n.stands_in_for as "standsInFor", n.last_error as "lastError", n.content ->> 'headline' as headline
    from notifications n
    where (${state ?? null}::text is null or ${STATE} = ${state ?? null})
      and (${channel ?? null}::text is null or n.channel = ${channel ?? null})
      ${alertId === undefined ? sql`` : sql`and n.alert_id = ${alertId}`}
      ${beforeId === undefined ? sql`` : sql`and n.id < ${beforeId}`}
      ${zoneIds == null ? sql`` : isOfZones(zoneIds)}
    order by n.id desc limit ${limit}`);
  return rows;
}

function isOfZones(zoneIds: readonly number[]): SQL {
  return sql`and exists (select from alerts a
    where a.id = n.alert_id and a.zone_id = any(${sql.param([...zoneIds])}::integer[]))`;
}

/** Returns the zone of a delivery's alert, null if the alert has no zone, undefined if there is no such delivery. */
export async function readDeliveryZone(db: Queryable, id: number): Promise<number | null | undefined> {
  const { rows } = await db.execute<{ zoneId: number | null }>(sql`
    select a.zone_id as "zoneId" from notifications n join alerts a on a.id = n.alert_id where n.id = ${id}`);
  return rows[0]?.zoneId;
}

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
    "id" in which ? sql`n.id = ${which.id}` : sql`n.channel = ${which.channel} and ${isDead(sql`n`)}`;
  const { rows } = await db.execute<{ [Key in keyof Replayed]: Replayed[Key] }>(sql`
    with asked as materialized (
      select n.id, n.alert_id, n.channel, n.transition, ${isDead(sql`n`)} as is_dead, exists (
        select from notifications later where later.alert_id = n.alert_id and later.channel = n.channel
          and later.transition > n.transition and later.state in ('delivered', 'sending') and later.reason <> 'advice'
      ) as is_outdated
      from notifications n where ${asked} order by n.id for update of n),
    again as (
      select id from asked where is_dead and not is_outdated
      union
      select r.id from notifications r join asked a on a.alert_id = r.alert_id and a.channel = r.channel
        and a.transition < r.transition
      where a.is_dead and not a.is_outdated and r.state = 'undeliverable' and r.last_error = ${ORPHANED}),
    due as (
      update notifications n set state = 'pending', next_attempt_at = now(), replayed_at = now(), last_error = null,
        digest_key = null
      from again where n.id = again.id returning n.id)
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
  const { rows } = await db.execute<{ givenUp: number }>(sql`
    select count(*)::integer as "givenUp" from notifications n
    where n.created_at >= ${new Date(sinceMs)} and ${isDead(sql`n`)} and not exists (
      select from notifications later where later.alert_id = n.alert_id and later.channel = n.channel
        and later.transition > n.transition and later.state in ('delivered', 'sending') and later.reason <> 'advice')`);
  return rows[0]?.givenUp ?? 0;
}
