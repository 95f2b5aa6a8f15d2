import { and, eq, inArray, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import { GOES_ON } from "#model/words.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { notifications } from "../schema/notifications.ts";
import {
  dropNeedless,
  earlierOpen,
  isIdle,
  isPaused,
  isUpdate,
  type NotificationRow,
  OPEN,
  saysAllOf,
} from "./drop-notifications.ts";

const n = alias(notifications, "n");
const earlier = alias(notifications, "earlier");

/**
 * Identifies a claim. A row that is claimed again has one attempt more, and its former holder may no longer write it.
 */
export interface Claimed {
  readonly id: number;
  /** Includes the current attempt. */
  readonly attempts: number;
}

export interface ClaimedNotification extends Claimed {
  readonly alertId: number;
  readonly transition: number;
  readonly channel: string;
  readonly dedupeKey: string;
  readonly content: unknown;
  /** Age since the row was written or last replayed, on Postgres's clock. */
  readonly ageMs: number;
  /** The provider reference of the newest delivered transition of this alert on this channel. */
  readonly providerReference: string | null;
  /** The progress that an earlier attempt stored with markRetry; null if there is none. */
  readonly progress: string | null;
}

export interface ClaimOptions {
  readonly channel: string;
  readonly limit: number;
  readonly leaseMs: number;
  /** True to claim rows that belong to a digest as well, one by one. */
  readonly digestsToo?: boolean;
}

export interface Claim {
  readonly notifications: readonly ClaimedNotification[];
  /** Rows that need not be sent, now undeliverable with the reason. */
  readonly dropped: number;
}

/** Returns the channels that have a due row, configured or not. */
export async function readDueChannels(db: Queryable): Promise<string[]> {
  const due = await db
    .selectDistinct({ channel: notifications.channel })
    .from(notifications)
    .where(sql`${notifications.state} in ${OPEN} and ${notifications.nextAttemptAt} <= now()`);
  return due.map(({ channel }) => channel);
}

/** Longer than the longest Retry-After that is obeyed, which is longer than every other pause. */
export const LONGEST_PAUSE = sql`interval '61 minutes'`;

/**
 * Makes the rows due that wait for longer than any row may. They were written while Postgres's clock was ahead.
 * Returns the number of rows.
 */
export async function hastenMisdated(db: Queryable): Promise<number> {
  const { rowCount } = await db
    .update(n)
    .set({ nextAttemptAt: sql`now()` })
    .where(sql`${n.state} in ${OPEN} and ${n.nextAttemptAt} > now() + ${LONGEST_PAUSE}`);
  return rowCount ?? 0;
}

/**
 * Takes up to `limit` due rows of a channel, at most one per alert, and leases them as `sending` for `leaseMs`. A row
 * of a sender that died is taken over when its lease is over. A row is never taken while an earlier transition of its
 * alert is open on the channel, so a receiver gets an alert's transitions in order.
 * Messages that a channel missed while it was down are not replayed. Open rows of the alerts at hand are dropped
 * first, as undeliverable with the reason as lastError. Dropped are:
 * - a row before a later `first`, `worse` or `repeat` that notifies, and a row that says no more than a later one
 * that does not notify;
 * - advice or an acknowledgement of an alert that was resolved meanwhile;
 * - a resolve whose firing never arrived;
 * - a firing that some recipients have and others deferred, once the resolve waits behind it;
 * - a firing that would only update a known alert, once the resolve waits behind it.
 * So an outage that outlasts an episode leaves one firing, the newest, and one resolve. With nothing claimed and
 * nothing dropped, nothing is due. If the channel has got no earlier message of the alert, its message says `first`, whatever its reason.
 */
export async function claimDueNotifications(
  tx: Queryable,
  { channel, limit, leaseMs, digestsToo = false }: ClaimOptions,
): Promise<Claim> {
  const due = await lockDue(tx, channel, limit, digestsToo);
  const dropped = await dropNeedless(tx, channel, due);
  const ids = due.map(({ id }) => id);
  return { notifications: await claim(tx, ids, leaseMs), dropped };
}

/** A row that a digest could contain, not yet claimed. The same rows as `claimDueNotifications` would take. */
export interface Candidate {
  readonly id: number;
  readonly dedupeKey: string;
  readonly content: unknown;
}

/** Locks up to `limit` due rows that may go into a digest. `claimDigest` claims them in the same transaction. */
export async function lockDigestCandidates(
  tx: Queryable,
  { channel, limit }: { channel: string; limit: number },
): Promise<{ candidates: readonly Candidate[]; dropped: number }> {
  const due = await lockDue(tx, channel, limit);
  const dropped = await dropNeedless(tx, channel, due);
  if (due.length === 0) return { candidates: [], dropped };
  const rows = await tx
    .select({ id: notifications.id, dedupeKey: notifications.dedupeKey, content: notifications.content })
    .from(notifications)
    .where(
      and(
        inArray(
          notifications.id,
          due.map(({ id }) => id),
        ),
        // A digest notifies and edits nothing. So a row that only updates a message in place is sent alone, and the
        // end of an alert whose message can be edited. A message of which a part was accepted goes on alone.
        sql`${notifications.state} in ${OPEN} and ${notifications.digestKey} is null
          and ${notifications.providerReference} is null and not ${isUpdate(notifications)}
          and not (${notifications.reason} = 'resolved' and ${lastReference(notifications)} is not null)`,
      ),
    )
    .orderBy(sql`(${notifications.content} ->> 'zoneId')`, notifications.reason, notifications.id);
  return { candidates: rows, dropped };
}

/** Leases these rows as one digest. They stay together until they are delivered. */
export async function claimDigest(
  tx: Queryable,
  ids: readonly number[],
  { digestKey, leaseMs }: { digestKey: string; leaseMs: number },
): Promise<ClaimedNotification[]> {
  if (ids.length === 0) return [];
  await tx
    .update(notifications)
    .set({ digestKey })
    .where(inArray(notifications.id, [...ids]));
  return claim(tx, [...ids], leaseMs);
}

/** Claims a digest that was begun and is due again, with the same rows except those that need not be sent any more. */
export async function claimBegunDigest(
  tx: Queryable,
  { channel, leaseMs }: { channel: string; leaseMs: number },
): Promise<{ digestKey: string; notifications: readonly ClaimedNotification[] } | null> {
  const [found] = await tx
    .select({ digestKey: n.digestKey })
    .from(n)
    .where(sql`${isDue(channel)} and ${n.digestKey} <> '' and not ${isPaused(sql`${channel}`)}`)
    .orderBy(n.id)
    .limit(1);
  const digestKey = found?.digestKey ?? null;
  if (digestKey === null) return null;
  const locked = await tx
    .select({ id: n.id })
    .from(n)
    .where(and(isDue(channel), eq(n.digestKey, digestKey)))
    .orderBy(n.id)
    .for("update", { skipLocked: true });
  const ids = locked.map(({ id }) => id);
  return { digestKey, notifications: await claim(tx, ids, leaseMs) };
}

/** Takes the oldest due row out of its digest, for good. Returns false if no digest is due. */
export async function releaseFromDigest(tx: Queryable, channel: string): Promise<boolean> {
  const released = await tx.execute(sql`
    with oldest as materialized (
      select ${n.id} from ${notifications} ${n}
      where ${isDue(channel)} and ${n.digestKey} <> '' order by ${n.id} limit 1 for update of ${n} skip locked)
    update ${notifications} ${n} set ${names(n.digestKey)} = '' from oldest where ${n.id} = oldest.id`);
  return (released.rowCount ?? 0) > 0;
}

/** Locks the due rows without an open row before them, or with only rows before them that they make needless. */
async function lockDue(
  tx: Queryable,
  channel: string,
  limit: number,
  digestsToo = false,
): Promise<{ id: number; alertId: number }[]> {
  return tx
    .select({ id: n.id, alertId: n.alertId })
    .from(n)
    .where(
      sql`${isDue(channel)} and (coalesce(${n.digestKey}, '') = '' or ${digestsToo}) and not ${isPaused(sql`${channel}`)}
        and not exists (${earlierOpen(n)} and not (${saysAllOf(n, earlier)} and ${isIdle(earlier)}))`,
    )
    .orderBy(n.nextAttemptAt, n.id)
    .limit(limit)
    .for("update", { skipLocked: true });
}

/** Claims rows. `attempts` is the fence: it distinguishes this claim from every other claim of the same row. */
async function claim(tx: Queryable, ids: number[], leaseMs: number): Promise<ClaimedNotification[]> {
  if (ids.length === 0) return [];
  const rows = await tx
    .update(n)
    .set({
      state: "sending",
      attempts: sql`${n.attempts} + 1`,
      nextAttemptAt: later(leaseMs),
      // The receiver knows nothing of an alert whose first message was dropped for this one.
      content: sql`case when ${n.reason} in ${[...GOES_ON]} and not ${isUpdate(n)} and not exists (${earlierSent(n)})
        then jsonb_set(${n.content}, '{reason}', '"first"') else ${n.content} end`,
    })
    .where(sql`${n.id} in ${ids} and ${n.state} in ${OPEN} and not exists (${earlierOpen(n)})`)
    .returning({
      id: n.id,
      alertId: n.alertId,
      transition: n.transition,
      channel: n.channel,
      attempts: n.attempts,
      dedupeKey: n.dedupeKey,
      content: n.content,
      progress: n.providerReference,
      ageMs: epochMs(sql`now() - coalesce(${n.replayedAt}, ${n.createdAt})`),
      // In its own template, because the builder drops the alias of a column that stands in a returned one directly.
      providerReference: sql<string | null>`${lastReference(n)}`,
    });
  // A digest that is sent again has to have the same bytes.
  return rows.sort((one, other) => one.id - other.id);
}

/**
 * Returns the provider reference of the newest delivered transition of the row's alert on its channel. A message that
 * is being sent again to keep its alert open was delivered before.
 */
function lastReference(row: NotificationRow): SQL {
  return sql`(select ${earlier.providerReference} from ${notifications} ${earlier}
    where ${earlier.alertId} = ${row.alertId} and ${earlier.channel} = ${row.channel} and ${earlier.providerReference} is not null
    and (${earlier.state} = 'delivered' or ${earlier.deliveredAt} is not null)
    order by ${earlier.transition} desc limit 1)`;
}

/** Returns the earlier transitions of the row's alert of which its channel has got something. */
function earlierSent(row: NotificationRow): SQL {
  return sql`select from ${notifications} ${earlier} where ${earlier.alertId} = ${row.alertId}
    and ${earlier.channel} = ${row.channel} and ${earlier.transition} < ${row.transition}
    and (${earlier.state} = 'delivered' or ${earlier.deliveredAt} is not null or ${earlier.providerReference} is not null)`;
}

function isDue(channel: string): SQL {
  return sql`${n.channel} = ${channel} and ${n.state} in ${OPEN} and ${n.nextAttemptAt} <= now()`;
}

/** Returns the moment `delayMs` from now on Postgres's clock. */
export function later(delayMs: number): SQL {
  return sql`now() + ${delayMs}::double precision * interval '1 millisecond'`;
}
