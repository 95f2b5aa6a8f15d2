/** The circuit of each channel, and channels that fail. */
import { and, eq, inArray, type SQL, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { CircuitState } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { channelStates, notifications } from "../schema/notifications.ts";
import { isDead, WAIT_PREFIX } from "./drop-notifications.ts";

const n = alias(notifications, "n");

/** Times in epoch ms, on Postgres's clock. */
export interface StoredChannelState {
  readonly state: CircuitState;
  readonly failures: number;
  readonly openings: number;
  readonly openedAtMs: number | null;
  readonly retryAtMs: number;
  readonly spentUntilMs: number;
  readonly lastError: string | null;
}

const members = {
  state: channelStates.state,
  failures: channelStates.failures,
  openings: channelStates.openings,
  openedAtMs: epochMs(channelStates.openedAt),
  retryAtMs: epochMs(channelStates.retryAt),
  spentUntilMs: epochMs(channelStates.spentUntil),
  lastError: channelStates.lastError,
};

/** Returns the channel's state, locked for this transaction, and the time. Another caller waits for the commit. */
export async function lockChannelState(
  tx: Queryable,
  channel: string,
): Promise<{ state: StoredChannelState; nowMs: number }> {
  await tx.insert(channelStates).values({ channel }).onConflictDoNothing();
  const rows = await tx
    .select({ ...members, nowMs: epochMs(sql`now()`) })
    .from(channelStates)
    .where(eq(channelStates.channel, channel))
    .for("update");
  const [row] = rows;
  if (row === undefined) throw new Error("a row that was just inserted is missing");
  const { nowMs, ...state } = row;
  return { state, nowMs };
}

export async function saveChannelState(
  tx: Queryable,
  channel: string,
  { openedAtMs, retryAtMs, spentUntilMs, ...plain }: StoredChannelState,
): Promise<void> {
  await tx
    .update(channelStates)
    .set({
      ...plain,
      openedAt: openedAtMs === null ? null : new Date(openedAtMs),
      retryAt: new Date(retryAtMs),
      spentUntil: new Date(spentUntilMs),
    })
    .where(eq(channelStates.channel, channel));
}

/** Enables channels that were disabled. Returns their number. */
export async function enableChannels(db: Queryable, channels: readonly string[]): Promise<number> {
  if (channels.length === 0) return 0;
  const enabled = await db
    .update(channelStates)
    .set({ state: "closed", failures: 0, openings: 0, openedAt: null, lastError: null })
    .where(and(inArray(channelStates.channel, [...channels]), eq(channelStates.state, "disabled")))
    .returning({ channel: channelStates.channel });
  return enabled.length;
}

/** Makes the notifications due now that wait by their back-off for a channel that has just recovered. */
export async function hastenWaiting(tx: Queryable, channel: string): Promise<void> {
  await boundWaiting(tx, channel, sql`now()`);
}

/**
 * Makes the notifications that wait by their back-off for a channel whose circuit is open due at the next probe. A
 * pause that the receiver asked for stays.
 */
export async function boundWaiting(tx: Queryable, channel: string, until: SQL | Date): Promise<void> {
  await tx
    .update(n)
    .set({ nextAttemptAt: until })
    .where(
      sql`${n.channel} = ${channel} and ${n.state} = 'pending' and ${n.nextAttemptAt} > ${until}
      and ${n.lastError} is not null and not starts_with(${n.lastError}, ${WAIT_PREFIX})`,
    );
}

interface ChannelStatus extends StoredChannelState {
  readonly channel: string;
  readonly waiting: number;
  readonly dead: number;
  /** Postgres's time. */
  readonly nowMs: number;
}

/** Returns the status of every channel that was ever sent to, by name. */
export async function readChannelStatuses(db: Queryable): Promise<readonly ChannelStatus[]> {
  const count = (where: SQL) =>
    sql<number>`(select count(*) from ${notifications} ${n} where ${and(eq(n.channel, channelStates.channel), where)})::integer`;
  return db
    .select({
      channel: channelStates.channel,
      ...members,
      waiting: count(sql`${n.state} in ('pending', 'sending')`),
      dead: count(isDead(n)),
      nowMs: epochMs(sql`now()`),
    })
    .from(channelStates)
    .orderBy(channelStates.channel);
}

const d = alias(notifications, "d");

interface FailingChannel {
  readonly channel: string;
  /** When the oldest undelivered message was written; epoch ms. */
  readonly sinceMs: number;
  /** Messages that will be tried again. */
  readonly waiting: number;
  /** Dead letters. */
  readonly givenUp: number;
  readonly lastError: string;
}

/**
 * Returns those of these channels that fail. A channel fails if a message became a dead letter within `graceMs` or
 * after the last delivery, or if a message has failed for longer than `graceMs` without any delivery.
 */
export async function readFailingChannels(
  db: Queryable,
  { channels, graceMs }: { channels: readonly string[]; graceMs: number },
): Promise<readonly FailingChannel[]> {
  const grace = sql`(${graceMs}::double precision * interval '1 millisecond')`;
  const { rows } = await db.execute<{ [Key in keyof FailingChannel]: FailingChannel[Key] }>(sql`
    select c.channel, floor(${epochMs(sql`min(${n.createdAt})`)}) as "sinceMs",
      count(*) filter (where ${n.state} <> 'undeliverable')::integer as waiting,
      count(*) filter (where ${n.state} = 'undeliverable')::integer as "givenUp",
      (array_agg(${n.lastError} order by ${n.nextAttemptAt} desc))[1] as "lastError"
    from unnest(${sql.param([...channels])}::text[]) as c(channel)
    cross join lateral (
      select coalesce(max(${d.deliveredAt}), '-infinity') as at from ${notifications} ${d}
      where ${d.channel} = c.channel and ${d.state} = 'delivered') last
    join ${notifications} ${n} on ${n.channel} = c.channel and ${n.lastError} is not null and (
      ${isDead(n)} and ${n.nextAttemptAt} >= least(last.at, now() - ${grace})
      or ${n.state} in ('pending', 'sending') and coalesce(${n.replayedAt}, ${n.createdAt}) < now() - ${grace}
        and last.at < now() - ${grace})
    group by c.channel order by c.channel`);
  return rows;
}
