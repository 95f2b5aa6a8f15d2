import { and, eq, inArray, type SQL, sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { notifications } from "../schema/notifications.ts";
import { inTransaction } from "../transaction.ts";

/** Says whose claim it is: a row claimed again has one attempt more, and its former holder may not write any more. */
export interface Claimed {
  readonly id: number;
  /** This one included. */
  readonly attempts: number;
}

export interface ClaimedNotification extends Claimed {
  readonly alertId: number;
  readonly transition: number;
  readonly channel: string;
  readonly dedupeKey: string;
  readonly content: unknown;
  /** Since it was written, on Postgres's clock. */
  readonly ageMs: number;
  /** What the newest delivered transition of this alert on this channel left behind. */
  readonly providerReference: string | null;
}

export interface Claim {
  readonly notifications: readonly ClaimedNotification[];
  /** Rows that need not be sent any more, now undeliverable with the reason. */
  readonly dropped: number;
}

/** A message that says all there is to say, whatever was said before. */
const SAYS_ALL = sql`('first', 'worse', 'repeat')`;
const OPEN = sql`('pending', 'sending')`;

/** Nobody is sending the row: it waits, or its sender has not come back in time. */
function isIdle(row: SQL): SQL {
  return sql`(${row}.state = 'pending' or (${row}.state = 'sending' and ${row}.next_attempt_at <= now()))`;
}

/** The lastErrors of rows that need not be sent: no failure of their channel. */
export const SUPERSEDED = "superseded by transition ";
export const ORPHANED = "its firing was not delivered to this channel";
/** Begins the lastError of a row that waits by its receiver's word. */
const TOLD_TO_WAIT = "told to wait: ";

/** A receiver that asked for a pause asked it for everything, also for what was written since. */
function isPaused(channel: SQL): SQL {
  return sql`exists (select from notifications told where told.channel = ${channel} and told.state = 'pending'
    and told.next_attempt_at > now() and starts_with(told.last_error, ${TOLD_TO_WAIT}))`;
}

/** Channels that have something due, configured or not. */
export async function readDueChannels(db: Queryable): Promise<string[]> {
  const due = await db
    .selectDistinct({ channel: notifications.channel })
    .from(notifications)
    .where(sql`${notifications.state} in ${OPEN} and ${notifications.nextAttemptAt} <= now()`);
  return due.map(({ channel }) => channel);
}

/**
 * Takes up to `limit` due rows of a channel, at most one per alert, and leases them as `sending` for `leaseMs`; a row of
 * a sender that died is taken over when its lease is over. A row is never taken while an earlier transition of its alert
 * is still open on the channel, so a receiver gets an alert's transitions in order.
 *
 * What a channel missed while it was down is not replayed. Open rows of the alerts at hand are dropped first
 * (undeliverable, with the reason as lastError): whatever came before a later `first`, `worse` or `repeat`; advice for an
 * alert that was resolved meanwhile; a resolve whose firing never arrived; and a firing that would only change what the
 * channel already knows of, once the resolve waits behind it. So an outage that outlasts an episode leaves one firing,
 * the newest, and one resolve. With nothing claimed and nothing dropped, nothing is due.
 */
export function claimDueNotifications(
  database: Database,
  { channel, limit, leaseMs }: { channel: string; limit: number; leaseMs: number },
): Promise<Claim> {
  return inTransaction(database, async ({ tx }) => {
    const due = await lockDue(tx, channel, limit);
    if (due.length === 0) return { notifications: [], dropped: 0 };
    const alertIds = [...new Set(due.map(({ alertId }) => alertId))];
    const superseded = await dropSuperseded(tx, channel, alertIds);
    const orphaned = await dropOrphanedResolves(tx, channel, alertIds);
    const ids = due.map(({ id }) => id);
    return { notifications: await claim(tx, ids, leaseMs), dropped: superseded + orphaned };
  });
}

/** Due rows that nothing stands before, or only what they make needless. */
async function lockDue(
  tx: Queryable,
  channel: string,
  limit: number,
): Promise<{ id: number; alertId: number }[]> {
  const due = await tx.execute(sql`
    select n.id, n.alert_id from notifications n
    where n.channel = ${channel} and n.state in ${OPEN} and n.next_attempt_at <= now()
      and not ${isPaused(sql`${channel}`)}
      and not exists (${earlierOpen(sql`n`)} and not (n.reason in ${SAYS_ALL} and ${isIdle(sql`earlier`)}))
    order by n.next_attempt_at, n.id limit ${limit} for update of n skip locked`);
  return due.rows.map((row) => ({ id: Number(row.id), alertId: Number(row.alert_id) }));
}

function earlierOpen(row: SQL): SQL {
  return sql`select from notifications earlier where earlier.alert_id = ${row}.alert_id
    and earlier.channel = ${row}.channel and earlier.transition < ${row}.transition and earlier.state in ${OPEN}`;
}

/** The reason of the last delivered transition before `row` that was more than advice; null where there was none. */
function lastTold(row: SQL): SQL {
  return sql`(select told.reason from notifications told where told.alert_id = ${row}.alert_id
    and told.channel = ${row}.channel and told.transition < ${row}.transition and told.state = 'delivered'
    and told.reason <> 'advice' order by told.transition desc limit 1)`;
}

/** Skips rows in use: a sender's own record of them comes first, the next claim looks again. */
async function dropSuperseded(tx: Queryable, channel: string, alertIds: number[]): Promise<number> {
  const dropped = await tx.execute(sql`
    with stale as materialized (
      select n.id, later.superseded_by from notifications n
      cross join lateral (
        select min(l.transition) as superseded_by from notifications l
        where l.alert_id = n.alert_id and l.channel = n.channel and l.transition > n.transition and l.state in ${OPEN}
          and (
            l.reason in ${SAYS_ALL}
            or (l.reason = 'resolved' and n.reason = 'advice')
            or (l.reason = 'resolved' and n.reason in ${SAYS_ALL} and coalesce(${lastTold(sql`n`)} in ${SAYS_ALL}, false))
          )
      ) later
      where n.channel = ${channel} and n.alert_id in ${alertIds} and n.state in ${OPEN} and ${isIdle(sql`n`)}
        and later.superseded_by is not null
      order by n.id for update of n skip locked
    )
    update notifications n set state = 'undeliverable', last_error = ${SUPERSEDED} || stale.superseded_by
    from stale where n.id = stale.id`);
  return dropped.rowCount ?? 0;
}

async function dropOrphanedResolves(tx: Queryable, channel: string, alertIds: number[]): Promise<number> {
  const dropped = await tx.execute(sql`
    with orphan as materialized (
      select n.id from notifications n
      where n.channel = ${channel} and n.alert_id in ${alertIds} and n.reason = 'resolved' and n.state in ${OPEN}
        and ${isIdle(sql`n`)} and not exists (${earlierOpen(sql`n`)})
        and coalesce(${lastTold(sql`n`)} not in ${SAYS_ALL}, true)
      order by n.id for update of n skip locked
    )
    update notifications n set state = 'undeliverable', last_error = ${ORPHANED}
    from orphan where n.id = orphan.id`);
  return dropped.rowCount ?? 0;
}

/** `attempts` is the fence: it tells this claim from every other of the same row. */
async function claim(tx: Queryable, ids: number[], leaseMs: number): Promise<ClaimedNotification[]> {
  const claimed = await tx.execute(sql`
    update notifications n set state = 'sending', attempts = n.attempts + 1, next_attempt_at = ${later(leaseMs)}
    where n.id in ${ids} and n.state in ${OPEN} and not exists (${earlierOpen(sql`n`)})
    returning n.id, n.alert_id, n.transition, n.channel, n.attempts, n.dedupe_key, n.content,
      extract(epoch from now() - n.created_at) * 1000 as age_ms, (
        select told.provider_reference from notifications told where told.alert_id = n.alert_id
          and told.channel = n.channel and told.state = 'delivered' and told.provider_reference is not null
        order by told.transition desc limit 1) as provider_reference`);
  return claimed.rows.map((row) => ({
    id: Number(row.id),
    alertId: Number(row.alert_id),
    transition: Number(row.transition),
    attempts: Number(row.attempts),
    channel: String(row.channel),
    dedupeKey: String(row.dedupe_key),
    content: row.content,
    ageMs: Number(row.age_ms),
    providerReference: typeof row.provider_reference === "string" ? row.provider_reference : null,
  }));
}

/**
 * Sent. A sender whose row was dropped meanwhile still tells the truth; one whose row was claimed again does not write,
 * its successor will. False in that case.
 */
export async function markDelivered(
  db: Queryable,
  { id, attempts }: Claimed,
  providerReference: string | null,
): Promise<boolean> {
  const written = await db
    .update(notifications)
    .set({ state: "delivered", deliveredAt: sql`now()`, lastError: null, providerReference })
    .where(
      and(
        eq(notifications.id, id),
        eq(notifications.attempts, attempts),
        inArray(notifications.state, ["sending", "undeliverable"]),
      ),
    )
    .returning({ id: notifications.id });
  return written.length === 1;
}

/** To be tried again in `delayMs`, and where the receiver has said so the whole channel. False when the claim was lost. */
export async function markRetry(
  db: Queryable,
  claimed: Claimed,
  { delayMs, error, isTold = false }: { delayMs: number; error: string; isTold?: boolean },
): Promise<boolean> {
  const lastError = isTold ? `${TOLD_TO_WAIT}${error}` : error;
  const written = await db
    .update(notifications)
    .set({ state: "pending", nextAttemptAt: later(delayMs), lastError })
    .where(isHeld(claimed))
    .returning({ id: notifications.id });
  return written.length === 1;
}

/** Never to be sent, from this moment on. False when the claim was lost. */
export async function markUndeliverable(db: Queryable, claimed: Claimed, error: string): Promise<boolean> {
  const written = await db
    .update(notifications)
    .set({ state: "undeliverable", lastError: error, nextAttemptAt: sql`now()` })
    .where(isHeld(claimed))
    .returning({ id: notifications.id });
  return written.length === 1;
}

function isHeld({ id, attempts }: Claimed): SQL | undefined {
  return and(
    eq(notifications.id, id),
    eq(notifications.attempts, attempts),
    eq(notifications.state, "sending"),
  );
}

function later(delayMs: number): SQL {
  return sql`now() + ${delayMs}::double precision * interval '1 millisecond'`;
}
