/** The evidence of a spike, and spikes as they are read by people. */
import { and, desc, eq, gte, inArray, isNull, lt, type SQL, type SQLWrapper, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { SeriesKey } from "#model/fingerprint.ts";
import { EVIDENCE_DIMENSIONS, type EvidenceDimension } from "#model/kinds.ts";
import { toUrlPartSql } from "#model/record-parts.ts";
import type { SearchClause } from "#model/search-condition.ts";
import { isAsked } from "../archive/search-condition.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { wafEvents } from "../schema/events.ts";
import { ruleBuckets } from "../schema/rules.ts";
import { type SpikeEvidence, spikes } from "../schema/spikes.ts";
import type { SpikeRow } from "./spikes.ts";

const b = alias(ruleBuckets, "b");
const e = alias(wafEvents, "e");

const TOP = 5;
const MAX_CODE_POINTS = 300;
/** Maximum number of newest events that are read, which limits the work during a flood. */
const SAMPLE = 20_000;

export interface EvidenceScope extends SeriesKey {
  /** The events are taken from [fromMs, toMs). */
  readonly fromMs: number;
  readonly toMs: number;
  /** Start of the count of events before toMs, a whole minute. */
  readonly sinceMs: number;
  readonly sparkline: readonly number[];
  /** The events that pass these clauses, instead of those of the rule. */
  readonly clauses?: readonly SearchClause[];
}

/** Returns evidence that still has to be collected. */
export function noEvidence({ fromMs, toMs, sparkline }: EvidenceScope): SpikeEvidence {
  const [from, to] = [new Date(fromMs).toISOString(), new Date(toMs).toISOString()];
  const total = sparkline.reduce((sum, count) => sum + count, 0);
  return { from, to, total, sampled: 0, firstEventAt: null, lastEventAt: null, top: emptyTop(), sparkline };
}

/** Returns what the rule's newest events in the scope have in common. */
export async function collectEvidence(db: Queryable, scope: EvidenceScope): Promise<SpikeEvidence> {
  const { total, first } = await countEvents(db, scope);
  const found = await db.execute<{
    dimension: EvidenceDimension | null;
    value: string | null;
    count: number;
    last: number | null;
  }>(evidenceStatement(scope));
  const overall = found.rows.find(({ dimension }) => dimension === null);
  const sampled = overall?.count ?? 0;
  const top = emptyTop();
  for (const { dimension, value, count } of found.rows) {
    if (dimension === null || value === null) continue;
    top[dimension].push({ value, count, share: count / sampled });
  }
  const isoTime = (ms: number | null | undefined) => (ms == null ? null : new Date(ms).toISOString());
  return {
    ...noEvidence(scope),
    total: Math.max(total, sampled),
    sampled,
    firstEventAt: isoTime(first),
    lastEventAt: isoTime(overall?.last),
    top,
  };
}

async function countEvents(db: Queryable, { zoneId, ruleId, sinceMs, toMs, clauses }: EvidenceScope) {
  if (clauses !== undefined) {
    const isCounted = isAsked(zoneId, { from: sinceMs, to: toMs, clauses });
    const { rows } = await db.execute<{ total: number; first: number | null }>(sql`
      select count(*)::integer as total, ${epochMs(sql`min(${e.occurredAt})`)} as first from ${wafEvents} ${e} where ${isCounted}`);
    return rows[0] ?? { total: 0, first: null };
  }
  const [since, to] = [sql`to_timestamp(${sinceMs / 1_000})`, sql`to_timestamp(${toMs / 1_000})`];
  const counted = await db.execute<{ total: number; first: number | null }>(sql`
    select (select coalesce(sum(${b.total}), 0)::integer from ${ruleBuckets} ${b}
        where ${b.zoneId} = ${zoneId} and ${b.ruleId} = ${ruleId} and ${b.width} = (select 60)
          and ${b.startsAt} >= ${since} and ${b.startsAt} < ${to}) as total,
      (select ${epochMs(sql`min(${e.occurredAt})`)} from ${wafEvents} ${e}
        where ${e.zoneId} = ${zoneId} and ${isOfRule(e.ruleId, ruleId)} and ${e.occurredAt} >= ${since}
          and ${e.occurredAt} < ${to}) as first`);
  return counted.rows[0] ?? { total: 0, first: null };
}

/** Returns the condition for the rule's events. Events without a rule count under ''. */
export function isOfRule(column: SQLWrapper, ruleId: string): SQL {
  return ruleId === "" ? sql`coalesce(${column}, '') = ''` : sql`${column} = ${ruleId}`;
}

/**
 * Returns a statement that counts every dimension in one pass over the sample. A path is that of a search, so a filter by
 * it finds the same events. The empty grouping set returns the size of the sample and its newest time.
 */
function evidenceStatement({ zoneId, ruleId, fromMs, toMs, clauses }: EvidenceScope) {
  const isOfSpike =
    clauses === undefined ? isOfRule(e.ruleId, ruleId) : isAsked(zoneId, { from: fromMs, to: toMs, clauses });
  const columns = sql.raw(EVIDENCE_DIMENSIONS.join(", "));
  const sets = sql.raw(EVIDENCE_DIMENSIONS.map((name) => `(${name})`).join(", "));
  // grouping() has one bit per column, set if rows are not grouped by the column.
  const all = 2 ** EVIDENCE_DIMENSIONS.length - 1;
  const isSet = EVIDENCE_DIMENSIONS.map((_, i) => all - 2 ** (EVIDENCE_DIMENSIONS.length - 1 - i));
  const nameOf = sql.raw(isSet.map((bits, i) => `when ${bits} then '${EVIDENCE_DIMENSIONS[i]}'`).join(" "));
  const valueOf = sql.raw(isSet.map((bits, i) => `when ${bits} then ${EVIDENCE_DIMENSIONS[i]}`).join(" "));
  const cut = (value: SQLWrapper) => sql`left(${value}, ${MAX_CODE_POINTS})`;
  return sql`
    with sample as materialized (
      select ${cut(e.ip)} as ip, ${cut(e.asn)} as asn, ${cut(e.country)} as country, coalesce(${cut(e.ua)}, '') as ua,
        ${cut(e.ja4)} as ja4, ${cut(e.action)} as action, ${cut(sql.raw(toUrlPartSql("path", "url")))} as path,
        ${e.occurredAt}
      from ${wafEvents} ${e} where ${e.zoneId} = ${zoneId} and ${isOfSpike}
        and ${e.occurredAt} >= to_timestamp(${fromMs / 1_000}) and ${e.occurredAt} < to_timestamp(${toMs / 1_000})
      order by ${e.occurredAt} desc limit ${SAMPLE}),
    counted as (
      select grouping(${columns}) as bits, ${columns}, count(*)::integer as count,
        ${epochMs(sql`max(occurred_at)`)} as last
      from sample group by grouping sets (${sets}, ())),
    named as (
      select case bits ${nameOf} end as dimension, case bits ${valueOf} end as value, count, last from counted),
    ranked as (
      select *, row_number() over (partition by dimension order by count desc, value collate "C") as place from named
      where dimension is null or value <> '' or dimension = 'ua')
    select dimension, value, count, last from ranked where dimension is null or place <= ${TOP}
    order by dimension, place`;
}

function emptyTop(): Record<EvidenceDimension, { value: string; count: number; share: number }[]> {
  return { ip: [], asn: [], country: [], path: [], ua: [], ja4: [], action: [] };
}

/** Selects spikes. A member that is left out does not filter. */
interface SpikeFilter {
  /** Null is every zone. */
  readonly zoneIds: readonly number[] | null;
  readonly ruleId?: string | undefined;
  readonly isOpen?: boolean | undefined;
  readonly severities?: readonly SpikeRow["severity"][] | undefined;
  readonly isLate?: boolean | undefined;
  /** Start of the half-open span of opening times, epoch ms. */
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
  /** Id of the last spike of the previous page. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

/** Returns the matching spikes, newest first. */
export function listSpikes(db: Queryable, filter: SpikeFilter): Promise<SpikeRow[]> {
  const { zoneIds, ruleId, isOpen, severities, isLate, sinceMs, untilMs, beforeId, limit } = filter;
  return db
    .select()
    .from(spikes)
    .where(
      and(
        zoneIds === null ? undefined : inArray(spikes.zoneId, [...zoneIds]),
        ruleId === undefined ? undefined : eq(spikes.ruleId, ruleId),
        isOpen === undefined
          ? undefined
          : isOpen
            ? isNull(spikes.closedAt)
            : sql`${spikes.closedAt} is not null`,
        severities === undefined ? undefined : inArray(spikes.severity, [...severities]),
        isLate === undefined ? undefined : eq(spikes.isLate, isLate),
        sinceMs === undefined ? undefined : gte(spikes.openedAt, new Date(sinceMs)),
        untilMs === undefined ? undefined : lt(spikes.openedAt, new Date(untilMs)),
        beforeId === undefined ? undefined : lt(spikes.id, beforeId),
      ),
    )
    .orderBy(desc(spikes.id))
    .limit(limit);
}

export async function readSpike(db: Queryable, id: number): Promise<SpikeRow | null> {
  const [row] = await db.select().from(spikes).where(eq(spikes.id, id));
  return row ?? null;
}
