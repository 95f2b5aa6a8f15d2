import { and, asc, desc, eq, gte, inArray, type SQL, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { notifications } from "../schema/notifications.ts";
import type { AlertRow } from "./alerts.ts";

/** Which alerts; a member that is left out asks for all. */
export interface AlertFilter {
  readonly states?: readonly AlertRow["state"][] | undefined;
  readonly zoneId?: number | undefined;
  /** A rule's id, or with `*` at its end a family (`942*`). */
  readonly rule?: string | undefined;
  /** The alert that speaks for them, together with others; itself not among them. */
  readonly groupId?: number | undefined;
  /** Epoch ms: fired then or later. */
  readonly sinceMs?: number | undefined;
  readonly limit: number;
}

/** The newest first. */
export function listAlerts(
  db: Queryable,
  { states, zoneId, rule, groupId, sinceMs, limit }: AlertFilter,
): Promise<AlertRow[]> {
  return db
    .select()
    .from(alerts)
    .where(
      and(
        states === undefined ? undefined : inArray(alerts.state, [...states]),
        zoneId === undefined ? undefined : eq(alerts.zoneId, zoneId),
        rule === undefined ? undefined : isOfRule(rule),
        groupId === undefined ? undefined : isOfGroup(groupId),
        sinceMs === undefined ? undefined : gte(alerts.firedAt, new Date(sinceMs)),
      ),
    )
    .orderBy(desc(alerts.id))
    .limit(limit);
}

/** By what the group's message names: of every rule the alert that is open, and those since the group's. */
function isOfGroup(id: number): SQL {
  return sql`exists (
    select from alerts told cross join lateral jsonb_path_query(told.details, '$.message.members[*]') member
    where told.id = ${id} and (member ->> 'zoneId')::bigint = ${alerts.zoneId}
      and member ->> 'ruleId' = ${alerts.ruleId}
      and (${alerts.state} <> 'resolved' or ${alerts.firedAt} >= told.fired_at))`;
}

function isOfRule(rule: string): SQL {
  if (!rule.endsWith("*")) return eq(alerts.ruleId, rule);
  return sql`starts_with(${alerts.ruleId}, ${rule.slice(0, -1)})`;
}

export async function readAlert(db: Queryable, id: number): Promise<AlertRow | null> {
  const [row] = await db.select().from(alerts).where(eq(alerts.id, id));
  return row ?? null;
}

/** What the outbox holds of one alert. */
export type AlertDelivery = Pick<
  typeof notifications.$inferSelect,
  "channel" | "transition" | "reason" | "state" | "attempts" | "createdAt" | "nextAttemptAt" | "deliveredAt"
> & { readonly lastError: string | null };

/** By channel and, within it, in the order of sending. */
export function readAlertDeliveries(db: Queryable, alertId: number): Promise<AlertDelivery[]> {
  const { channel, transition, reason, state, attempts, createdAt, nextAttemptAt, deliveredAt, lastError } =
    notifications;
  return db
    .select({
      channel,
      transition,
      reason,
      state,
      attempts,
      createdAt,
      nextAttemptAt,
      deliveredAt,
      lastError,
    })
    .from(notifications)
    .where(eq(notifications.alertId, alertId))
    .orderBy(asc(channel), asc(transition));
}
