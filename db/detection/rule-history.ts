import { and, desc, eq, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { SeriesKey } from "#model/fingerprint.ts";
import type { Mark } from "#model/kinds.ts";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { advice, alerts } from "../schema/alerts.ts";
import { ruleBuckets, ruleMetrics } from "../schema/rules.ts";
import { spikes, verdicts } from "../schema/spikes.ts";
import { askedSeries } from "./trends.ts";

const b = alias(ruleBuckets, "b");
const m = alias(ruleMetrics, "m");
const a = alias(advice, "a");
const s = alias(spikes, "s");

export interface AskedAdvice {
  /** Epoch ms. */
  readonly askedAt: number;
  readonly success: boolean;
  /** Hostile text; null if the platform gave none. */
  readonly text: string | null;
  readonly errorKey: string | null;
  readonly spikeId: number | null;
}

/** Returns what was asked about the rule, newest first. */
export function listAdvice(
  db: Queryable,
  { zoneId, ruleId }: SeriesKey,
  limit: number,
): Promise<AskedAdvice[]> {
  return db
    .select({
      askedAt: epochMs(a.askedAt),
      success: a.success,
      text: a.text,
      errorKey: a.errorKey,
      spikeId: a.spikeId,
    })
    .from(a)
    .where(and(eq(a.zoneId, zoneId), eq(a.ruleId, ruleId)))
    .orderBy(desc(a.askedAt))
    .limit(limit);
}

/** Returns the newest text among the last five answers about each of these rules. Rules without one are left out. */
export async function readNewestAdvice(
  db: Queryable,
  series: readonly SeriesKey[],
): Promise<(SeriesKey & { readonly askedAt: number; readonly text: string })[]> {
  const { rows } = await db.execute<{ zoneId: number; ruleId: string; askedAt: number; text: string }>(sql`
    select asked.zone_id as "zoneId", asked.rule_id as "ruleId", text,
      ${epochMs(sql`asked_at`)} as "askedAt"
    from ${askedSeries(series)}
    cross join lateral (
      select * from (
        select ${a.askedAt}, ${a.text} from ${advice} ${a}
        where ${a.zoneId} = asked.zone_id and ${a.ruleId} = asked.rule_id
        order by ${a.askedAt} desc limit 5) recent
      where text is not null order by asked_at desc limit 1) given`);
  return rows;
}

export interface ComparedDay {
  readonly day: string;
  /** The platform's own count; null if it was not read. */
  readonly platform: number | null;
  readonly stored: number;
  /** Epoch ms. */
  readonly fetchedAt: number | null;
}

/** Returns the platform's daily counts of the rule beside the stored ones, oldest first. */
export async function compareRuleDays(
  db: Queryable,
  { zoneId, ruleId }: SeriesKey,
  sinceMs: number,
): Promise<ComparedDay[]> {
  const since = new Date(sinceMs);
  const { rows } = await db.execute<{ [Key in keyof ComparedDay]: ComparedDay[Key] }>(sql`
    with there as (
      select ${m.day}, ${m.total}, ${m.fetchedAt} from ${ruleMetrics} ${m}
      where ${m.zoneId} = ${zoneId} and ${m.ruleId} = ${ruleId}
        and ${m.day} >= (${since}::timestamptz at time zone 'UTC')::date),
    here as (
      select (${b.startsAt} at time zone 'UTC')::date as day, ${b.total} from ${ruleBuckets} ${b}
      where ${b.zoneId} = ${zoneId} and ${b.ruleId} = ${ruleId} and ${b.width} = 86400 and ${b.startsAt} >= ${since})
    select day::text, there.total::float8 as platform, coalesce(here.total, 0)::float8 as stored,
      ${epochMs(sql`there.fetched_at`)} as "fetchedAt"
    from there full join here using (day) order by day`);
  return rows;
}

export interface SpikeSpan {
  readonly id: number;
  readonly openedAt: number;
  readonly closedAt: number | null;
  readonly severity: string;
  readonly mark: Mark | null;
  readonly peak: number;
  /** The alert of the spike; null if none was raised. */
  readonly alertId: number | null;
  /** The title of the latest verdict. */
  readonly verdict: string | null;
}

/** Returns the spikes of the rule that were open in [fromMs, toMs), oldest first, the newest 500. */
export async function listSpikeSpans(
  db: Queryable,
  { zoneId, ruleId }: SeriesKey,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<SpikeSpan[]> {
  const newest = db
    .select({ id: sql`max(${alerts.id})::float8` })
    .from(alerts)
    .where(eq(alerts.spikeId, s.id));
  const latest = db
    .select({ title: sql`${verdicts.verdict} ->> 'title'` })
    .from(verdicts)
    .where(eq(verdicts.spikeId, s.id))
    .orderBy(desc(verdicts.judgedAt))
    .limit(1);
  const rows = await db
    .select({
      id: s.id,
      openedAt: epochMs(s.openedAt),
      closedAt: epochMs(s.closedAt),
      severity: s.severity,
      mark: s.mark,
      peak: s.peak,
      alertId: sql<number | null>`${newest}`,
      verdict: sql<string | null>`${latest}`,
    })
    .from(s)
    .where(
      sql`${s.zoneId} = ${zoneId} and ${s.ruleId} = ${ruleId} and ${s.openedAt} < ${new Date(toMs)}
        and (${s.closedAt} is null or ${s.closedAt} >= ${new Date(fromMs)})`,
    )
    .orderBy(desc(s.openedAt))
    .limit(500);
  return rows.reverse();
}
