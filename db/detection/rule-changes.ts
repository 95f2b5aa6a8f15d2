/** Rules whose action changed or that became silent. */
import { and, asc, eq, gt, gte, inArray, isNull, lt, or, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { SeriesKey } from "#model/fingerprint.ts";
import type { ChangeKind } from "#model/kinds.ts";
import { SAME_REQUEST_MS } from "#model/request-facts.ts";
import { type RuleChange, SUM_RULES } from "#model/rules.ts";
import type { Queryable } from "../client.ts";
import { alerts } from "../schema/alerts.ts";
import { wafEvents } from "../schema/events.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { spikes } from "../schema/spikes.ts";
import { askedSeries } from "./trends.ts";

const a = alias(alerts, "a");
const b = alias(ruleBuckets, "b");
const e = alias(wafEvents, "e");
const o = alias(wafEvents, "o");

const STOPPED = sql`${b.blocked} + ${b.challenged}`;
const SUMS = sql`coalesce(sum(${STOPPED}), 0)::float8 as stopped, coalesce(sum(${b.logged}), 0)::float8 as logged`;

/** Rules that may have changed their action. Times are epoch ms. */
interface ActionScope {
  /** Only rules with an event of their rarer action since then. */
  readonly fromMs: number;
  /** Start of the days whose counts say which action is rare. */
  readonly daysFromMs: number;
  /** The rarer action has at least so many events, and at most this share of all. */
  readonly atLeast: number;
  readonly share: number;
  /** Rules that changed lately: their counts do not say which action is rare. */
  readonly changed: readonly SeriesKey[];
  /** First hour of those that are returned, since the epoch. */
  readonly fromHour: number;
  readonly limit: number;
}

interface ActionCounts extends SeriesKey {
  /** Whether events that were stopped are the rare ones. Null for rules that changed lately: either may be. */
  readonly isRarelyStopped: boolean | null;
  /** One entry per hour with events: hour since the epoch, events blocked or challenged, and events logged. */
  readonly hours: readonly (readonly [hour: number, stopped: number, logged: number])[];
}

/** Returns the hours of the rules that may have changed their action, those whose rarer action is rarest first. */
export async function readActionCounts(db: Queryable, scope: ActionScope): Promise<ActionCounts[]> {
  const { fromMs, daysFromMs, atLeast, share, changed, fromHour, limit } = scope;
  const isOfRule = sql`${b.zoneId} = recent.zone_id and ${b.ruleId} = recent.rule_id`;
  const { rows } = await db.execute<{ [Key in keyof ActionCounts]: ActionCounts[Key] }>(sql`
    with recent as materialized (
      select ${b.zoneId}, ${b.ruleId}, ${SUMS} from ${ruleBuckets} ${b}
      where ${b.width} = 60 and ${b.ruleId} <> '' and ${b.startsAt} >= ${new Date(fromMs)}
      group by ${b.zoneId}, ${b.ruleId}),
    asked as materialized (
      select recent.zone_id, recent.rule_id, case when not is_changed then days.stopped < days.logged end as is_rarely_stopped from recent
      cross join lateral (
        select ${SUMS} from ${ruleBuckets} ${b}
        where ${isOfRule} and ${b.width} = (select 86400) and ${b.startsAt} >= ${new Date(daysFromMs)}) days
      cross join lateral (
        select least(days.stopped, days.logged) as rare, days.stopped + days.logged as events,
          exists (select from ${askedSeries(changed)}
            where asked.zone_id = recent.zone_id and asked.rule_id = recent.rule_id) as is_changed) sums
      where is_changed or rare >= ${atLeast} and rare <= events * ${share}
          and (days.stopped <= days.logged and recent.stopped > 0
            or days.logged <= days.stopped and recent.logged > 0)
      order by rare / greatest(events, 1), 1, 2 limit ${limit})
    select recent.zone_id as "zoneId", recent.rule_id as "ruleId", recent.is_rarely_stopped as "isRarelyStopped", (
      select coalesce(json_agg(json_build_array((extract(epoch from ${b.startsAt}) / 3600)::integer,
        ${STOPPED}, ${b.logged}) order by ${b.startsAt}), '[]'::json)
      from ${ruleBuckets} ${b} where ${isOfRule} and ${b.width} = (select 3600)
        and ${b.startsAt} >= to_timestamp(${fromHour}::float8 * 3600)) as hours
    from asked recent`);
  return rows;
}

interface StoredAction extends SeriesKey {
  /** Since the epoch. */
  readonly minute: number;
  readonly action: string | null;
  /** Hostile text; empty if it is not known. */
  readonly ip: string;
}

/**
 * Returns those of the newest `limit` events of each rule after `afterMs` in whose request it is alone, in the order of time. Rules
 * with fewer than `atLeast` such events of their rare action are left out: most of what a zone stores is of requests in which several
 * rules match, and to look for the others costs a search per event.
 */
export async function readRuleActions(
  db: Queryable,
  rules: readonly Omit<ActionCounts, "hours">[],
  { afterMs, limit, atLeast }: { afterMs: number; limit: number; atLeast: number },
): Promise<StoredAction[]> {
  const near = sql.raw(`interval '${SAME_REQUEST_MS} milliseconds'`);
  // A rule that logs alone is blocked where others match, too. The limit keeps this a search per event: as a join it may read a whole zone.
  const isOfOthers = sql`coalesce((select true from ${wafEvents} ${o} where ${o.zoneId} = newest.zone_id
    and ${o.occurredAt} between newest.occurred_at - ${near} and newest.occurred_at + ${near}
    and ${o.ruleId} <> newest.rule_id and ${o.ruleId} !~ ${SUM_RULES} and case
      when newest.request_id is null then ${o.ip} = newest.ip and ${o.url} = newest.url
      else ${o.requestId} = newest.request_id end limit 1), false)`;
  const asked = {
    zones: sql.param(rules.map(({ zoneId }) => zoneId)),
    rules: sql.param(rules.map(({ ruleId }) => ruleId)),
    rarely: sql.param(rules.map(({ isRarelyStopped }) => isRarelyStopped)),
  };
  const { rows } = await db.execute<{ [Key in keyof StoredAction]: StoredAction[Key] }>(sql`
    with newest as materialized (
      select asked.*, found.*
      from unnest(${asked.zones}::integer[], ${asked.rules}::text[], ${asked.rarely}::boolean[]) as asked(zone_id, rule_id, rarely)
      cross join lateral (
        select ${e.occurredAt}, ${e.action}, ${e.ip}, ${e.url}, ${e.requestId} from ${wafEvents} ${e}
        where ${e.zoneId} = asked.zone_id and ${e.ruleId} = asked.rule_id and ${e.occurredAt} >= ${new Date(afterMs)}
        order by ${e.occurredAt} desc limit ${limit}) found),
    suspected as materialized (
      select distinct zone_id, rule_id from newest where rarely is null
      union all select zone_id, rule_id from newest
      where rarely = (lower(action) not in ('log', 'logged')) and not ${isOfOthers}
      group by zone_id, rule_id having count(*) >= ${atLeast})
    select zone_id as "zoneId", rule_id as "ruleId", action,
      floor(extract(epoch from occurred_at) / 60)::integer as minute,
      case when ip = 'erased' then '' else coalesce(left(ip, 300), '') end as ip
    from newest
    where case when (zone_id, rule_id) in (select zone_id, rule_id from suspected) then not ${isOfOthers} end
    order by occurred_at`);
  return rows;
}

/** The silent rules to read. Times are epoch ms. */
interface SilentScope {
  readonly nowMs: number;
  /** Start of the days that are read, and the fewest events in them. */
  readonly daysFromMs: number;
  readonly atLeast: number;
  /** The last event is in [lastFromMs, lastToMs). */
  readonly lastFromMs: number;
  readonly lastToMs: number;
  /** The number of events to expect since then, if a week has as many as these days. */
  readonly missing: number;
  readonly limit: number;
}

interface SilentRule extends SeriesKey {
  /** The minute of its last event, since the epoch. */
  readonly lastMinute: number;
  /** One entry per hour of the week up to that event: hour since the epoch, and events. */
  readonly hours: readonly (readonly [hour: number, events: number])[];
}

/** Returns the rules that usually have events and had none for a while, those that miss most first. */
export async function readSilentRules(db: Queryable, scope: SilentScope): Promise<SilentRule[]> {
  const { nowMs, daysFromMs, atLeast, lastFromMs, lastToMs, missing, limit } = scope;
  const { rows } = await db.execute<{ [Key in keyof SilentRule]: SilentRule[Key] }>(sql`
    with busy as materialized (
      select ${b.zoneId}, ${b.ruleId}, sum(${b.total})::float8 as total from ${ruleBuckets} ${b}
      where ${b.width} = 86400 and ${b.startsAt} >= ${new Date(daysFromMs)} and ${b.ruleId} <> ''
      group by ${b.zoneId}, ${b.ruleId} having sum(${b.total}) >= ${atLeast}),
    silent as (
      select busy.*, last.starts_at as last_at,
        total / 168 * extract(epoch from ${new Date(nowMs)}::timestamptz - last.starts_at) / 3600 as missing
      from busy cross join lateral (
        select ${b.startsAt} from ${ruleBuckets} ${b}
        where ${b.zoneId} = busy.zone_id and ${b.ruleId} = busy.rule_id and ${b.width} = (select 60)
        order by ${b.startsAt} desc limit 1) last),
    asked as materialized (
      select * from silent where missing >= ${missing}
        and last_at >= ${new Date(lastFromMs)} and last_at < ${new Date(lastToMs)}
      order by missing desc, zone_id, rule_id limit ${limit})
    select zone_id as "zoneId", rule_id as "ruleId", (extract(epoch from last_at) / 60)::integer as "lastMinute", (
      select coalesce(json_agg(json_build_array((extract(epoch from ${b.startsAt}) / 3600)::integer, ${b.total})
        order by ${b.startsAt}), '[]'::json)
      from ${ruleBuckets} ${b}
      where ${b.zoneId} = asked.zone_id and ${b.ruleId} = asked.rule_id and ${b.width} = (select 3600)
        and ${b.startsAt} > last_at - interval '7 days' and ${b.startsAt} <= last_at) as hours
    from asked`);
  return rows;
}

/** A stored spike that is about changes of a zone's rules. */
export interface ChangesRow {
  readonly id: number;
  readonly zoneId: number;
  readonly isOpen: boolean;
  readonly changes: readonly RuleChange[];
}

/**
 * Returns the spikes of this kind that are open or closed after a time, the oldest first: of all zones, or of one whose
 * spikes are locked for this transaction.
 */
export async function readChanges(
  db: Queryable,
  { kind, closedAfterMs, zoneId }: { kind: ChangeKind; closedAfterMs: number; zoneId?: number },
): Promise<ChangesRow[]> {
  const { id, closedAt, changes } = spikes;
  const asked = db
    .select({ id, zoneId: spikes.zoneId, closedAt, changes })
    .from(spikes)
    .where(
      and(
        eq(spikes.kind, kind),
        or(isNull(closedAt), gt(closedAt, new Date(closedAfterMs))),
        zoneId === undefined ? undefined : eq(spikes.zoneId, zoneId),
      ),
    )
    .orderBy(asc(id));
  const rows = await (zoneId === undefined ? asked : asked.for("update"));
  return rows.map(({ closedAt, changes, ...row }) => ({
    ...row,
    isOpen: closedAt === null,
    changes: changes ?? [],
  }));
}

/**
 * Closes the open spikes of this kind whose alert a person has resolved, and those that opened before a time. Then the
 * next change of the zone opens another. Returns their number.
 */
export async function closeChanges(
  db: Queryable,
  { kind, openedBeforeMs, nowMs }: { kind: ChangeKind; openedBeforeMs: number; nowMs: number },
): Promise<number> {
  const isResolved = sql`exists (select from ${alerts} ${a}
    where ${a.spikeId} = ${spikes.id} and ${a.state} = 'resolved')`;
  const isOld = sql`${spikes.openedAt} <= ${new Date(openedBeforeMs)}`;
  const { rowCount } = await db
    .update(spikes)
    .set({ closedAt: sql`greatest(${spikes.openedAt}, ${new Date(nowMs)}::timestamptz)` })
    .where(and(eq(spikes.kind, kind), isNull(spikes.closedAt), or(isResolved, isOld)));
  return rowCount ?? 0;
}

interface ChangedRule {
  readonly zoneId: number;
  readonly ruleId: string;
  readonly total: number;
  /** Count of the span of the same length before. */
  readonly before: number;
}

/** Returns the rules whose events of whole UTC days differ most from those of as many days before. */
export function readChangedRules(
  db: Queryable,
  {
    zoneIds,
    fromMs,
    toMs,
    limit,
  }: { zoneIds: readonly number[]; fromMs: number; toMs: number; limit: number },
): Promise<ChangedRule[]> {
  const { zoneId, ruleId, startsAt, total, width } = ruleBuckets;
  const from = new Date(fromMs).toISOString();
  const now = sql<number>`coalesce(sum(${total}) filter (where ${startsAt} >= ${from}::timestamptz), 0)::float8`;
  const before = sql<number>`coalesce(sum(${total}) filter (where ${startsAt} < ${from}::timestamptz), 0)::float8`;
  return db
    .select({ zoneId, ruleId, total: now, before })
    .from(ruleBuckets)
    .where(
      and(
        eq(width, 86_400),
        inArray(zoneId, [...zoneIds]),
        gte(startsAt, new Date(2 * fromMs - toMs)),
        lt(startsAt, new Date(toMs)),
      ),
    )
    .groupBy(zoneId, ruleId)
    .having(sql`${now} <> ${before}`)
    .orderBy(sql`abs(${now} - ${before}) desc`, zoneId, sql`${ruleId} collate "C"`)
    .limit(limit);
}
