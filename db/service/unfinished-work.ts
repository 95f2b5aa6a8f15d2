import { sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { LONGEST_PAUSE } from "../delivery/notifications.ts";
import { alerts } from "../schema/alerts.ts";
import { dirtyBuckets } from "../schema/dirty-buckets.ts";
import { notifications } from "../schema/notifications.ts";
import { spikes } from "../schema/spikes.ts";

const d = alias(dirtyBuckets, "d");
const s = alias(spikes, "s");
const later = alias(spikes, "later");
const a = alias(alerts, "a");
const n = alias(notifications, "n");

/** Kinds of work that the tables hold and that are due now. */
export interface UnfinishedWork {
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
