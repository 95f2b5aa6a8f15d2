import { and, eq, gte, inArray, lt, type SQL, sql } from "drizzle-orm";
import { type Mark, RULE_SPIKE_KINDS, SPIKE_KINDS } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { ADVISORY_LOCKS } from "../postgres/transaction.ts";
import { alerts } from "../schema/alerts.ts";
import { spikes } from "../schema/spikes.ts";

export interface WeekQuery {
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  readonly fromMs: number;
  readonly toMs: number;
}

const IS_NOTIFIED = sql`jsonb_path_exists(${alerts.transitions}, '$[*].channels[*]')`;
const IS_FEW = sql`jsonb_path_exists(${alerts.transitions}, '$[*] ? (@.mutedBy == "few-addresses")')`;

/** Makes this transaction the only one that writes a digest. */
export async function lockDigests(tx: Queryable): Promise<void> {
  await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.weeklyDigest})`);
}

/** Alerts of Longwatch about itself and messages about late events do not count. */
function firedIn({ zoneIds, fromMs, toMs }: WeekQuery): SQL | undefined {
  return and(
    inArray(alerts.kind, [...SPIKE_KINDS]),
    gte(alerts.firedAt, new Date(fromMs)),
    lt(alerts.firedAt, new Date(toMs)),
    zoneIds === null ? undefined : inArray(alerts.zoneId, [...zoneIds]),
  );
}

/** Returns the alerts that fired, and how long people took to acknowledge them. */
export async function countAlerts(db: Queryable, query: WeekQuery) {
  const ms = sql`extract(epoch from ${alerts.acknowledgedAt} - ${alerts.firedAt}) * 1000`;
  const [row] = await db
    .select({
      fired: sql<number>`count(*)::integer`,
      notified: sql<number>`(count(*) filter (where ${IS_NOTIFIED}))::integer`,
      acknowledged: sql<number>`count(${alerts.acknowledgedAt})::integer`,
      medianMs: sql<number | null>`percentile_cont(0.5) within group (order by ${ms})::float8`,
      worstMs: sql<number | null>`max(${ms})::float8`,
    })
    .from(alerts)
    .where(firedIn(query));
  if (row === undefined) throw new Error("an aggregate returned no row");
  return row;
}

/** Returns how many of the alerts have each mark, by the spike that they refer to. */
export function countMarks(
  db: Queryable,
  query: WeekQuery,
): Promise<{ readonly mark: Mark; readonly alerts: number }[]> {
  return db
    .select({ mark: sql<Mark>`${spikes.mark}`, alerts: sql<number>`count(*)::integer` })
    .from(alerts)
    .innerJoin(spikes, sql`${spikes.id} = ${alerts.spikeId} and ${spikes.mark} is not null`)
    .where(firedIn(query))
    .groupBy(spikes.mark)
    .orderBy(sql`2 desc, 1`);
}

/** Returns the rules of the alerts about rules that fell silent. */
export async function listSilentRules(db: Queryable, query: WeekQuery, limit: number) {
  const rows = await db
    .selectDistinct({ zoneId: spikes.zoneId, ruleId: sql<string>`changed ->> 'ruleId'` })
    .from(alerts)
    .innerJoin(spikes, eq(spikes.id, alerts.spikeId))
    .crossJoin(sql`jsonb_array_elements(${spikes.changes}) changed`)
    .where(and(firedIn(query), eq(spikes.kind, "silent-rule")))
    .orderBy(spikes.zoneId, sql`2`)
    .limit(limit);
  return rows;
}

/** Returns the rules that notified nobody because few addresses sent their events, those with the most spikes first. */
export function listFewAddresses(db: Queryable, query: WeekQuery, limit: number) {
  return db
    .select({
      zoneId: sql<number>`${alerts.zoneId}`,
      ruleId: sql<string>`${alerts.ruleId}`,
      alerts: sql<number>`count(*)::integer`,
    })
    .from(alerts)
    .where(and(firedIn(query), inArray(alerts.kind, [...RULE_SPIKE_KINDS]), IS_FEW, sql`not ${IS_NOTIFIED}`))
    .groupBy(alerts.zoneId, alerts.ruleId)
    .orderBy(sql`3 desc, 1, ${alerts.ruleId} collate "C"`)
    .limit(limit);
}
