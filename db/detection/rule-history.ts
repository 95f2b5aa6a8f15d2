import { sql } from "drizzle-orm";
import type { Mark } from "#model/kinds.ts";
import type { SeriesKey } from "#model/series-key.ts";
import type { Queryable } from "../client.ts";
import { askedSeries } from "./asked-series.ts";

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
export async function listAdvice(
  db: Queryable,
  { zoneId, ruleId }: SeriesKey,
  limit: number,
): Promise<AskedAdvice[]> {
  const { rows } = await db.execute<{ [Key in keyof AskedAdvice]: AskedAdvice[Key] }>(sql`
    select (extract(epoch from asked_at) * 1000)::float8 as "askedAt", success, text, error_key as "errorKey",
      spike_id::float8 as "spikeId"
    from advice where zone_id = ${zoneId} and rule_id = ${ruleId} order by asked_at desc limit ${limit}`);
  return rows;
}

/** Returns the newest text among the last five answers about each of these rules. Rules without one are left out. */
export async function readNewestAdvice(
  db: Queryable,
  series: readonly SeriesKey[],
): Promise<(SeriesKey & { readonly askedAt: number; readonly text: string })[]> {
  const { rows } = await db.execute<{ zoneId: number; ruleId: string; askedAt: number; text: string }>(sql`
    select asked.zone_id as "zoneId", asked.rule_id as "ruleId", text,
      (extract(epoch from asked_at) * 1000)::float8 as "askedAt"
    from ${askedSeries(series)}
    cross join lateral (
      select * from (
        select asked_at, text from advice a where a.zone_id = asked.zone_id and a.rule_id = asked.rule_id
        order by asked_at desc limit 5) recent
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
      select day, total, fetched_at from rule_metrics
      where zone_id = ${zoneId} and rule_id = ${ruleId} and day >= (${since}::timestamptz at time zone 'UTC')::date),
    here as (
      select (starts_at at time zone 'UTC')::date as day, total from rule_buckets
      where zone_id = ${zoneId} and rule_id = ${ruleId} and width = 86400 and starts_at >= ${since})
    select day::text, there.total::float8 as platform, coalesce(here.total, 0)::float8 as stored,
      (extract(epoch from there.fetched_at) * 1000)::float8 as "fetchedAt"
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
}

/** Returns the spikes of the rule that were open in [fromMs, toMs), oldest first, the newest 500. */
export async function listSpikeSpans(
  db: Queryable,
  { zoneId, ruleId }: SeriesKey,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Promise<SpikeSpan[]> {
  const { rows } = await db.execute<{ [Key in keyof SpikeSpan]: SpikeSpan[Key] }>(sql`
    select id::float8 as id, (extract(epoch from opened_at) * 1000)::float8 as "openedAt",
      (extract(epoch from closed_at) * 1000)::float8 as "closedAt", severity, mark, peak::float8 as peak,
      (select max(a.id)::float8 from alerts a where a.spike_id = s.id) as "alertId"
    from spikes s where zone_id = ${zoneId} and rule_id = ${ruleId} and opened_at < ${new Date(toMs)}
      and (closed_at is null or closed_at >= ${new Date(fromMs)})
    order by opened_at desc limit 500`);
  return rows.reverse();
}
