/** Stores the result of each attempt to deliver a notification: delivered, retried, given up, or copied to the fallback. */
import { and, inArray, sql } from "drizzle-orm";
import { alias, type PgUpdateSetSource } from "drizzle-orm/pg-core";
import type { NotifyReason } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { alerts } from "../schema/alerts.ts";
import { notifications } from "../schema/notifications.ts";
import { isDead, SAYS_LITTLE, WAIT_PREFIX } from "./drop-notifications.ts";
import { type Claimed, later } from "./notifications.ts";

const n = alias(notifications, "n");

/**
 * Marks claims as delivered. A sender whose row was dropped meanwhile still records the delivery. A sender whose row
 * was claimed again writes nothing; the next sender will. `note` says what was not as configured. Returns the number of
 * rows written.
 */
export function markDelivered(
  db: Queryable,
  claimed: readonly Claimed[],
  providerReference: string | null,
  note: string | null = null,
): Promise<number> {
  return write(db, claimed, ["sending", "undeliverable"], {
    state: "delivered",
    deliveredAt: sql`now()`,
    lastError: note,
    providerReference,
  });
}

/**
 * Schedules another attempt in `delayMs`, and pauses the whole channel if the receiver asked for the pause. `isAlone`
 * releases the row from its digest. Returns the number of claims that are still valid.
 */
export function markRetry(
  db: Queryable,
  claimed: readonly Claimed[],
  { delayMs, error, isWaitRequested = false, isAlone = false, progress = null }: RetryPlan,
): Promise<number> {
  const lastError = isWaitRequested ? `${WAIT_PREFIX}${error}` : error;
  return write(db, claimed, ["sending"], {
    state: "pending",
    nextAttemptAt: later(delayMs),
    lastError,
    ...(isAlone ? { digestKey: "" } : {}),
    ...(progress === null ? {} : { providerReference: progress }),
  });
}

export interface RetryPlan {
  readonly delayMs: number;
  readonly error: string;
  readonly isWaitRequested?: boolean;
  readonly isAlone?: boolean;
  /** Progress of the attempt with a message of several parts. */
  readonly progress?: string | null;
}

/**
 * Marks claims as undeliverable. They are not sent again unless a person replays them. Returns the number of claims
 * still valid.
 */
export function markUndeliverable(
  db: Queryable,
  claimed: readonly Claimed[],
  error: string,
): Promise<number> {
  return write(db, claimed, ["sending"], {
    state: "undeliverable",
    lastError: error,
    nextAttemptAt: sql`now()`,
  });
}

/**
 * Gives up rows that have waited for longer than `maxAgeMs` behind others that failed, because they were due as long
 * as those. Returns the number of rows.
 */
export async function giveUpAged(
  db: Queryable,
  { channel, maxAgeMs, error }: { channel: string; maxAgeMs: number; error: string },
): Promise<number> {
  const given = await db.execute(sql`
    with aged as materialized (
      select ${n.id} from ${notifications} ${n} where ${n.channel} = ${channel} and ${n.state} = 'pending'
        and coalesce(${n.replayedAt}, ${n.createdAt}) < ${later(-maxAgeMs)}
      order by ${n.id} for update of ${n} skip locked)
    update ${notifications} ${n} set ${names(n.state)} = 'undeliverable', ${names(n.lastError)} = ${error},
      ${names(n.nextAttemptAt)} = now()
    from aged where ${n.id} = aged.id`);
  return given.rowCount ?? 0;
}

async function write(
  db: Queryable,
  claimed: readonly Claimed[],
  from: readonly ("sending" | "undeliverable")[],
  values: PgUpdateSetSource<typeof notifications>,
): Promise<number> {
  const valid = sql`(${notifications.id}, ${notifications.attempts}) in (select * from unnest(
    ${sql.param(claimed.map(({ id }) => id))}::bigint[],
    ${sql.param(claimed.map(({ attempts }) => attempts))}::integer[]))`;
  const written = await db
    .update(notifications)
    .set(values)
    .where(and(valid, inArray(notifications.state, [...from])))
    .returning({ id: notifications.id });
  return written.length;
}

const a = alias(alerts, "a");
const l = alias(notifications, "l");

/**
 * Makes the newest message of every unresolved alert due again on a channel whose receiver ends alerts by itself, if
 * the message was accepted longer than `afterMs` ago. An acknowledgement or a silence does not matter: the receiver
 * recognises the alert by its key. `deliveredAt` stays. Returns the number of rows.
 */
export async function renewNotifications(
  db: Queryable,
  { channel, afterMs }: { channel: string; afterMs: number },
): Promise<number> {
  const renewed = await db.execute(sql`
    with old as materialized (
      select ${n.id} from ${alerts} ${a} join ${notifications} ${n} on ${n.alertId} = ${a.id}
      where ${a.state} <> 'resolved' and ${n.channel} = ${channel} and ${n.state} = 'delivered'
        and ${n.reason} <> 'resolved' and ${n.deliveredAt} < ${later(-afterMs)}
        and not exists (select from ${notifications} ${l}
          where ${l.alertId} = ${n.alertId} and ${l.channel} = ${n.channel} and ${l.transition} > ${n.transition}
            and (${l.state} <> 'undeliverable' or ${isDead(l)}))
      order by ${n.id} for update of ${n} skip locked)
    update ${notifications} ${n} set ${names(n.state)} = 'pending', ${names(n.nextAttemptAt)} = now(),
      ${names(n.replayedAt)} = now()
    from old where ${n.id} = old.id`);
  return renewed.rowCount ?? 0;
}

const late = alias(notifications, "late");
const dead = alias(notifications, "dead");
const copied = alias(notifications, "copied");
const ended = alias(notifications, "ended");

interface Overdue {
  readonly alertId: number;
  readonly transition: number;
  readonly reason: Exclude<NotifyReason, "advice">;
  /** The channel that has not accepted the message. */
  readonly channel: string;
  readonly content: unknown;
}

/** Messages that were given up longer ago are not copied. */
const DEAD_SINCE = sql`interval '1 day'`;

/**
 * Returns the messages to copy to the fallback channel: those that are undelivered for longer than `afterMs`, those that
 * were given up, and the resolve of every alert that was copied before. Skips what the fallback channel has or gets
 * anyway, and messages that were delivered once and are only sent again to keep an alert open.
 */
export async function readOverdue(
  db: Queryable,
  { fallback, afterMs, limit }: { fallback: string; afterMs: number; limit: number },
): Promise<Overdue[]> {
  const { rows } = await db.execute<{ [Key in keyof Overdue]: Overdue[Key] }>(sql`
    select distinct on (${n.alertId}, ${n.transition}) ${n.alertId}::float8 as "alertId", ${n.transition},
      ${n.reason}, ${n.channel}, ${n.content}
    from ${notifications} ${n}
    where ${n.channel} <> ${fallback} and ${n.reason} not in ${SAYS_LITTLE} and ${n.id} in (
        select ${late.id} from ${notifications} ${late}
        where ${late.state} in ('pending', 'sending') and ${late.deliveredAt} is null
          and ${late.createdAt} < now() - ${afterMs}::double precision * interval '1 millisecond'
        union
        select ${dead.id} from ${notifications} ${dead}
        where ${isDead(dead)} and ${dead.deliveredAt} is null and ${dead.nextAttemptAt} > now() - ${DEAD_SINCE}
        union
        select ${ended.id} from ${notifications} ${copied}
        join ${notifications} ${ended} on ${ended.alertId} = ${copied.alertId}
        where ${copied.standsInFor} is not null and ${copied.channel} = ${fallback}
          and ${ended.channel} = ${copied.standsInFor} and ${ended.reason} = 'resolved' and ${ended.transition} > ${copied.transition})
      and not exists (select from ${notifications} ${copied} where ${copied.alertId} = ${n.alertId}
        and ${copied.channel} = ${fallback} and ${copied.transition} >= ${n.transition})
    order by ${n.alertId}, ${n.transition}, ${n.channel} limit ${limit}`);
  return rows;
}

/** Inserts copies for the fallback channel, due at once. Returns the number of new rows. */
export async function insertFallbackCopies(
  db: Queryable,
  rows: readonly (Omit<Overdue, "channel"> & { channel: string; standsInFor: string; dedupeKey: string })[],
): Promise<number> {
  if (rows.length === 0) return 0;
  const inserted = await db
    .insert(notifications)
    .values([...rows])
    .onConflictDoNothing()
    .returning({ id: notifications.id });
  return inserted.length;
}
