/** Runs that people asked for, and work that is not finished. */
import { and, desc, eq, inArray, isNull, lt, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { RunKind } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { LONGEST_PAUSE } from "../delivery/notifications.ts";
import { alerts } from "../schema/alerts.ts";
import { dirtyBuckets } from "../schema/ingest.ts";
import { notifications } from "../schema/notifications.ts";
import { requestedRuns } from "../schema/service.ts";
import { spikes } from "../schema/spikes.ts";

/** The run that a person asks for. Times in epoch ms. */
interface WantedRun {
  readonly kind: RunKind;
  readonly zoneId: number;
  readonly from: number;
  readonly to: number;
  readonly withIds: boolean;
}

export interface RequestedRun extends WantedRun {
  readonly id: number;
  readonly requestedBy: string;
  readonly requestedAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
  readonly starts: number;
  readonly percent: number;
  readonly step: string | null;
  /** Reason why the last start failed. With an end: reason why the run failed. */
  readonly problem: string | null;
  readonly result: unknown;
}

const KEPT_MS = 90 * 86_400_000;
/** A person looks at the last runs, and a mistake in a script must not fill the queue. */
export const MOST_UNFINISHED = 20;

/**
 * Adds a run, or returns the unfinished run with the same kind, zone and span. Returns null if too many runs of the zone
 * are unfinished. Forgets ended runs after 90 days. Call in a transaction.
 */
export async function requestRun(
  tx: Queryable,
  wanted: WantedRun & { readonly requestedBy: string },
  nowMs: number,
): Promise<{ readonly run: RequestedRun; readonly isNew: boolean } | null> {
  const { kind, zoneId, from, to, withIds, requestedBy } = wanted;
  const span = { fromAt: new Date(from), toAt: new Date(to) };
  await tx.delete(requestedRuns).where(lt(requestedRuns.endedAt, new Date(nowMs - KEPT_MS)));
  const isSame = and(
    eq(requestedRuns.kind, kind),
    eq(requestedRuns.zoneId, zoneId),
    eq(requestedRuns.fromAt, span.fromAt),
    eq(requestedRuns.toAt, span.toAt),
    eq(requestedRuns.withIds, withIds),
    isNull(requestedRuns.endedAt),
  );
  // The second turn finds the run that a request at the same time has added.
  for (let turn = 0; turn < 2; turn += 1) {
    const [known] = await tx.select().from(requestedRuns).where(isSame);
    if (known !== undefined) return { run: toRun(known), isNew: false };
    if ((await countUnfinished(tx, zoneId)) >= MOST_UNFINISHED) return null;
    const [added] = await tx
      .insert(requestedRuns)
      .values({ kind, zoneId, withIds, requestedBy, ...span, requestedAt: new Date(nowMs) })
      .onConflictDoNothing()
      .returning();
    if (added !== undefined) return { run: toRun(added), isNew: true };
  }
  throw new Error("a requested run was neither added nor found");
}

async function countUnfinished(tx: Queryable, zoneId: number): Promise<number> {
  const [row] = await tx
    .select({ count: sql<number>`count(*)::integer` })
    .from(requestedRuns)
    .where(and(eq(requestedRuns.zoneId, zoneId), isNull(requestedRuns.endedAt)));
  return row?.count ?? 0;
}

export async function readRun(db: Queryable, id: number): Promise<RequestedRun | null> {
  const [row] = await db.select().from(requestedRuns).where(eq(requestedRuns.id, id));
  return row === undefined ? null : toRun(row);
}

/** Returns the newest runs of these zones; null means every zone. */
export async function listRuns(
  db: Queryable,
  { zoneIds, limit }: { readonly zoneIds: readonly number[] | null; readonly limit: number },
): Promise<RequestedRun[]> {
  const rows = await db
    .select()
    .from(requestedRuns)
    .where(zoneIds === null ? undefined : inArray(requestedRuns.zoneId, [...zoneIds]))
    .orderBy(desc(requestedRuns.id))
    .limit(limit);
  return rows.map(toRun);
}

/**
 * Returns the runs without an end that are due, the oldest first. A run that failed is due after 10 s, 20 s, 40 s and
 * so on since its first start, and at last every ten minutes.
 */
export async function listDueRuns(
  db: Queryable,
  { nowMs, limit }: { readonly nowMs: number; readonly limit: number },
): Promise<Pick<RequestedRun, "id" | "kind">[]> {
  const { starts, startedAt, problem, endedAt } = requestedRuns;
  const waitSeconds = sql`least(10 * power(2, least(${starts}, 20) - 1), 600 * ${starts})`;
  const dueAt = sql`${startedAt} + ${waitSeconds} * interval '1 second'`;
  return db
    .select({ id: requestedRuns.id, kind: requestedRuns.kind })
    .from(requestedRuns)
    .where(and(isNull(endedAt), or(isNull(problem), sql`${dueAt} <= ${new Date(nowMs)}`)))
    .orderBy(requestedRuns.id)
    .limit(limit);
}

/** Counts a start. Returns the run, or null if it has ended, is of another kind, or is not there. */
export async function startRun(
  db: Queryable,
  { id, kinds, nowMs }: { readonly id: number; readonly kinds: readonly RunKind[]; readonly nowMs: number },
): Promise<RequestedRun | null> {
  const [row] = await db
    .update(requestedRuns)
    .set({
      starts: sql`${requestedRuns.starts} + 1`,
      startedAt: sql`coalesce(${requestedRuns.startedAt}, ${new Date(nowMs)})`,
    })
    .where(
      and(eq(requestedRuns.id, id), inArray(requestedRuns.kind, [...kinds]), isNull(requestedRuns.endedAt)),
    )
    .returning();
  return row === undefined ? null : toRun(row);
}

type Report = Partial<Pick<RequestedRun, "percent" | "step" | "problem" | "result">> & {
  /** Epoch ms; left out while the run goes on. */
  readonly endedAt?: number;
};

/** Stores progress, a failure or the end of a run that has no end yet. */
export async function reportRun(db: Queryable, id: number, { endedAt, ...report }: Report): Promise<void> {
  await db
    .update(requestedRuns)
    .set({ ...report, ...(endedAt === undefined ? {} : { endedAt: new Date(endedAt) }) })
    .where(and(eq(requestedRuns.id, id), isNull(requestedRuns.endedAt)));
}

function toRun({
  fromAt,
  toAt,
  requestedAt,
  startedAt,
  endedAt,
  ...row
}: typeof requestedRuns.$inferSelect): RequestedRun {
  return {
    ...row,
    from: fromAt.getTime(),
    to: toAt.getTime(),
    requestedAt: requestedAt.getTime(),
    startedAt: startedAt?.getTime() ?? null,
    endedAt: endedAt?.getTime() ?? null,
  };
}

const d = alias(dirtyBuckets, "d");
const s = alias(spikes, "s");
const later = alias(spikes, "later");
const a = alias(alerts, "a");
const n = alias(notifications, "n");

/** Kinds of work that the tables hold and that are due now. */
interface UnfinishedWork {
  readonly staleMinutes: boolean;
  /**
   * A spike needs advice or a notification: it is open, its alert is unresolved, or it ended before anybody was
   * notified.
   */
  readonly pendingSpikes: boolean;
  /** A spike opened lately, so its first message may be waiting for its time. */
  readonly newSpikes: boolean;
  /** A notification is due or misdated. */
  readonly dueNotifications: boolean;
  /**
   * A channel was reported as failing and may have recovered, or a message of an open alert is so old that its receiver
   * may end the alert.
   */
  readonly channelUpkeep: boolean;
}

/** raise-alerts notifies of a missed spike for this long. */
const MISSED_SPIKE = sql`interval '24 hours'`;

/** Longer than the default group wait and group interval. */
const NEW = sql`interval '10 minutes'`;

/** No channel renews a message that is younger. */
const RENEWABLE = sql`interval '30 minutes'`;

/** Returns which kinds of work exist, with existence checks in one round trip. */
export async function readUnfinishedWork(db: Queryable): Promise<UnfinishedWork> {
  const { rows } = await db.execute<Record<keyof UnfinishedWork, boolean>>(sql`
    select exists (select from ${dirtyBuckets} ${d}) as "staleMinutes",
      exists (select from ${spikes} ${s} where ${s.closedAt} is null
        or exists (select from ${alerts} ${a} where ${a.spikeId} = ${s.id} and ${a.state} <> 'resolved')
        or ${s.closedAt} > now() - ${MISSED_SPIKE} and not ${s.isLate} and not exists (select from ${alerts} ${a}
          join ${spikes} ${later} on ${later.id} = ${a.spikeId}
          where ${later.zoneId} = ${s.zoneId} and ${later.ruleId} = ${s.ruleId}
            and ${later.incident} = ${s.incident} and ${later.id} >= ${s.id})) as "pendingSpikes",
      exists (select from ${spikes} ${s} where ${s.openedAt} > now() - ${NEW}) as "newSpikes",
      exists (select from ${notifications} ${n}
        where ${n.state} in ('pending', 'sending') and ${n.nextAttemptAt} <= now())
        or exists (select from ${notifications} ${n}
          where ${n.state} in ('pending', 'sending')
            and ${n.nextAttemptAt} > now() + ${LONGEST_PAUSE}) as "dueNotifications",
      exists (select from ${alerts} ${a} where ${a.kind} = 'self' and ${a.state} <> 'resolved')
        or exists (select from ${alerts} ${a} join ${notifications} ${n} on ${n.alertId} = ${a.id}
          where ${a.state} <> 'resolved' and ${n.state} = 'delivered'
            and ${n.deliveredAt} < now() - ${RENEWABLE}) as "channelUpkeep"`);
  const [work] = rows;
  if (work === undefined) throw new Error("a query without a from clause returned no row");
  return work;
}
