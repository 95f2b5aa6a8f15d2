/** Alerts as they are read by people. */
import {
  and,
  asc,
  desc,
  eq,
  getTableColumns,
  gt,
  gte,
  inArray,
  lt,
  ne,
  or,
  type SQL,
  sql,
} from "drizzle-orm";
import { alias, type PgColumn } from "drizzle-orm/pg-core";
import type { AlertSort, Mark } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs, names } from "../postgres/terms.ts";
import { alerts } from "../schema/alerts.ts";
import { notifications } from "../schema/notifications.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { spikes } from "../schema/spikes.ts";
import type { AlertRow } from "./alerts.ts";

const incident = alias(alerts, "incident_alert");

/** Selects alerts. A member that is left out does not filter. */
export interface AlertFilter {
  readonly states?: readonly AlertRow["state"][] | undefined;
  readonly zoneId?: number | undefined;
  /** Keeps alerts of these zones only. Null or left out keeps every zone and the alerts without a zone. */
  readonly zoneIds?: readonly number[] | null | undefined;
  /** A rule's id, or a family of rules with `*` at the end (`942*`). */
  readonly rule?: string | undefined;
  /** Keeps the alerts of the rules that are part of this incident. The alert of the incident is not returned. */
  readonly incidentId?: number | undefined;
  /** Epoch ms. Keeps alerts that fired then or later. */
  readonly sinceMs?: number | undefined;
  /** Epoch ms. Keeps alerts that fired before. */
  readonly untilMs?: number | undefined;
  readonly severities?: readonly string[] | undefined;
  readonly kinds?: readonly string[] | undefined;
  /** Default: newest. */
  readonly sort?: AlertSort | undefined;
  /** The last alert of the previous page. */
  readonly after?: AlertPosition | undefined;
  readonly limit: number;
}

/** An alert as reports show it. */
export interface ReportedAlert extends AlertRow {
  /** The end of the last minute that was not quiet, if an open alert's count is an everyday one again. */
  readonly quietSince: Date | null;
  /** The alert of the incident that the alert's rule is part of. */
  readonly incidentAlertId: number | null;
}

/** Returns the column with its table's name, which Drizzle leaves out in the selected terms of a single table. */
function full(column: PgColumn): SQL {
  return sql`${column.table}.${names(column)}`;
}

/** An alert is open for a while after its spike has calmed down, in case the spike returns. */
const REPORTED = {
  ...getTableColumns(alerts),
  quietSince: sql<Date | null>`(select ${spikes.lastActiveAt} from ${spikes}
    where ${spikes.id} = ${alerts.spikeId} and ${alerts.state} <> 'resolved'
      and (${spikes.closedAt} is not null
        or ${spikes.windowCount} < ${spikes.threshold} and ${spikes.lastActiveAt} < ${spikes.judgedThrough}))`.mapWith(
    spikes.lastActiveAt,
  ),
  incidentAlertId: sql<number | null>`(select max(${full(incident.id)}) from ${spikes}
    join ${alerts} ${incident} on ${full(incident.spikeId)} = ${full(spikes.memberOf)}
    where ${full(spikes.id)} = ${full(alerts.spikeId)})`.mapWith(Number),
};

/** A place in a list. The urgency is that of the alert when it was read, so that a change of it skips no other alert. */
interface AlertPosition {
  readonly id: number;
  /** Only for `worst`. */
  readonly urgency: number;
}

/** The severity in the alert's latest message. */
const SEVERITY = sql<string>`${alerts.details} #>> '{message,severity}'`;
/** Smaller is more urgent. An alert whose message cannot be read counts as critical. */
const URGENCY = sql<number>`(case ${alerts.state} when 'firing' then 0 when 'acknowledged' then 10 else 20 end
  + case ${SEVERITY} when 'info' then 3 when 'warning' then 2 when 'error' then 1 else 0 end)`;

/** Returns the matching alerts in the order of `sort`. */
export async function listAlerts(db: Queryable, filter: AlertFilter): Promise<RankedAlert[]> {
  const { states, zoneId, zoneIds, rule, incidentId, sinceMs, untilMs, severities, kinds, limit } = filter;
  const { sort = "newest", after } = filter;
  const rows = await db
    .select({ row: REPORTED, urgency: URGENCY })
    .from(alerts)
    .where(
      and(
        states === undefined ? undefined : inArray(alerts.state, [...states]),
        zoneId === undefined ? undefined : eq(alerts.zoneId, zoneId),
        zoneIds == null ? undefined : inArray(alerts.zoneId, [...zoneIds]),
        rule === undefined ? undefined : isOfRule(rule),
        incidentId === undefined ? undefined : isOfIncident(incidentId),
        sinceMs === undefined ? undefined : gte(alerts.firedAt, new Date(sinceMs)),
        untilMs === undefined ? undefined : lt(alerts.firedAt, new Date(untilMs)),
        severities === undefined ? undefined : inArray(SEVERITY, [...severities]),
        kinds === undefined ? undefined : inArray(alerts.kind, [...kinds]),
        after === undefined ? undefined : isAfter(sort, after),
      ),
    )
    .orderBy(...(sort === "worst" ? [asc(URGENCY)] : []), desc(alerts.id))
    .limit(limit);
  return rows.map(({ row, urgency }) => ({ ...row, urgency }));
}

/** An alert with its urgency, which a page of the list ends with. */
type RankedAlert = ReportedAlert & AlertPosition;

function isAfter(sort: AlertSort, { id, urgency }: AlertPosition): SQL | undefined {
  const isOlder = lt(alerts.id, id);
  return sort === "newest" ? isOlder : or(gt(URGENCY, urgency), and(eq(URGENCY, urgency), isOlder));
}

/**
 * Returns the condition for the members of an incident, by the rules that its message names: for each rule its open
 * alert and the alerts since the incident's.
 */
function isOfIncident(id: number): SQL {
  return sql`exists (
    select from ${alerts} ${incident}
      cross join lateral jsonb_path_query(${incident.details}, '$.message.members[*]') member
    where ${incident.id} = ${id} and (member ->> 'zoneId')::bigint = ${alerts.zoneId}
      and member ->> 'ruleId' = ${alerts.ruleId}
      and (${alerts.state} <> 'resolved' or ${alerts.firedAt} >= ${incident.firedAt}))`;
}

function isOfRule(rule: string): SQL {
  if (!rule.endsWith("*")) return eq(alerts.ruleId, rule);
  return sql`starts_with(${alerts.ruleId}, ${rule.slice(0, -1)})`;
}

export async function readAlert(db: Queryable, id: number): Promise<ReportedAlert | null> {
  const [row] = await db.select(REPORTED).from(alerts).where(eq(alerts.id, id));
  return row ?? null;
}

/** One outbox row of one alert. */
type AlertDelivery = Pick<
  typeof notifications.$inferSelect,
  "channel" | "transition" | "reason" | "state" | "attempts" | "createdAt" | "nextAttemptAt" | "deliveredAt"
> & { readonly lastError: string | null };

/** Returns the outbox rows of one alert by channel and, within a channel, in the order of sending. */
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

/** Returns the number of unresolved alerts about Longwatch itself. */
export async function countSelfAlerts(db: Queryable): Promise<number> {
  return db.$count(alerts, and(eq(alerts.kind, "self"), ne(alerts.state, "resolved")));
}

const b = alias(ruleBuckets, "b");

interface RisenRule {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly during: number;
  readonly before: number;
}

/**
 * Returns the rules that had more than twice as many events in [fromMs, toMs) as in the time of the same length before,
 * the largest difference first.
 */
export async function listRisenRules(
  db: Queryable,
  query: {
    readonly zoneIds: readonly number[] | null;
    /** Whole minutes. */
    readonly fromMs: number;
    readonly toMs: number;
    readonly except: { readonly zoneId: number; readonly ruleId: string };
    readonly limit: number;
  },
): Promise<RisenRule[]> {
  const { zoneIds, fromMs, toMs, except, limit } = query;
  const from = new Date(fromMs);
  const ofZones =
    zoneIds === null ? sql`` : sql`and ${b.zoneId} = any(${sql.param([...zoneIds])}::integer[])`;
  const { rows } = await db.execute<{ [Key in keyof RisenRule]: RisenRule[Key] }>(sql`
    with counted as (
      select ${b.zoneId}, ${b.ruleId},
        coalesce(sum(${b.total}) filter (where ${b.startsAt} >= ${from}), 0)::float8 as during,
        coalesce(sum(${b.total}) filter (where ${b.startsAt} < ${from}), 0)::float8 as before
      from ${ruleBuckets} ${b}
      where ${b.width} = 60 and ${b.startsAt} >= ${new Date(fromMs - (toMs - fromMs))}
        and ${b.startsAt} < ${new Date(toMs)} ${ofZones}
      group by ${b.zoneId}, ${b.ruleId})
    select zone_id as "zoneId", rule_id as "ruleId", during, before from counted
    where during >= 10 and during > 2 * before and not (zone_id = ${except.zoneId} and rule_id = ${except.ruleId})
    order by during - before desc, zone_id, rule_id limit ${limit}`);
  return rows;
}

interface Episode {
  readonly alertId: number;
  readonly firedAt: number;
  readonly resolvedAt: number | null;
  readonly state: string;
  readonly severity: string | null;
  readonly mark: Mark | null;
  readonly peak: number | null;
}

/** Returns the other alerts about a rule, newest first. */
export function listEpisodes(
  db: Queryable,
  { zoneId, ruleId, exceptId, limit }: { zoneId: number; ruleId: string; exceptId: number; limit: number },
): Promise<Episode[]> {
  return db
    .select({
      alertId: alerts.id,
      firedAt: epochMs(alerts.firedAt),
      resolvedAt: epochMs(alerts.resolvedAt),
      state: alerts.state,
      severity: sql<string | null>`${alerts.details} #>> '{message,severity}'`,
      mark: spikes.mark,
      peak: spikes.peak,
    })
    .from(alerts)
    .leftJoin(spikes, eq(spikes.id, alerts.spikeId))
    .where(and(eq(alerts.zoneId, zoneId), eq(alerts.ruleId, ruleId), ne(alerts.id, exceptId)))
    .orderBy(desc(alerts.id))
    .limit(limit);
}
