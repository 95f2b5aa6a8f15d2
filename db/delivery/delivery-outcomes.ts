import { and, inArray, sql } from "drizzle-orm";
import type { PgUpdateSetSource } from "drizzle-orm/pg-core";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { names } from "../postgres/terms.ts";
import { notifications } from "../schema/notifications.ts";
import { WAIT_PREFIX } from "../service/last-errors.ts";
import { type Claimed, later } from "./notifications.ts";

const n = alias(notifications, "n");

/**
 * Marks claims as delivered. A sender whose row was dropped meanwhile still records the delivery. A sender whose row
 * was claimed again writes nothing; the next sender will. Returns the number of rows written.
 */
export function markDelivered(
  db: Queryable,
  claimed: readonly Claimed[],
  providerReference: string | null,
): Promise<number> {
  return write(db, claimed, ["sending", "undeliverable"], {
    state: "delivered",
    deliveredAt: sql`now()`,
    lastError: null,
    providerReference,
  });
}

/**
 * Schedules another attempt in `delayMs`, and pauses the whole channel if the receiver asked for the pause. `isAlone`
 * releases the row from its digest. Returns the number of claims still held.
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
 * still held.
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
  const held = sql`(${notifications.id}, ${notifications.attempts}) in (select * from unnest(
    ${sql.param(claimed.map(({ id }) => id))}::bigint[],
    ${sql.param(claimed.map(({ attempts }) => attempts))}::integer[]))`;
  const written = await db
    .update(notifications)
    .set(values)
    .where(and(held, inArray(notifications.state, [...from])))
    .returning({ id: notifications.id });
  return written.length;
}
