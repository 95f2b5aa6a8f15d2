import type { Database } from "#db/client.ts";
import { proveAnew, readCoveredHours } from "#db/coverage/covered-hours.ts";
import { readProvenDays, writeProvenDays } from "#db/coverage/horizons.ts";
import { reopenHours } from "#db/coverage/reopen-hours.ts";
import { askRulesAgain, readDaysOfRules } from "#db/detection/rule-metrics.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Log } from "#lib/log.ts";
import { DAY_MS } from "#lib/units.ts";
import { horizonAt, startOfDay, toDay } from "#model/horizon.ts";
import type { ProvenDay } from "#model/zones.ts";
import { AGREE_MS } from "#stages/coverage/hour-proof.ts";
import {
  finalFrom,
  isReadCompletely,
  judgeMetrics,
  type MetricAbove,
  mustProveAnew,
} from "#stages/coverage/judge-metrics.ts";

export interface JudgeMetricsDeps {
  readonly database: Database;
  readonly log: Log;
  readonly settleMs: number;
}

/** Result of comparing the metrics of a zone. */
export interface MetricsVerdict {
  /** UTC days, epoch ms of their start, on which the metrics of every rule agree with the stored events. */
  readonly confirmedDays: ReadonlySet<number>;
  /** Counts above the stored ones, by day. */
  readonly above: ReadonlyMap<string, readonly MetricAbove[]>;
}

/**
 * Compares the platform's daily metrics with the stored events of the days that had been read completely. A count
 * above ours reopens the hours of its day, which are then proven with looks that begin at least ten minutes later. If no
 * route shows the difference, the hours are sealed again, and their evidence names the count. Metrics that were above
 * before their day had settled are fetched again after that.
 */
export async function judgeZoneMetrics(
  { database, log, settleMs }: JudgeMetricsDeps,
  zoneId: number,
  now: number,
): Promise<MetricsVerdict> {
  const { db } = database;
  const fromMs = startOfDay(horizonAt(now));
  const hours = await readCoveredHours(db, zoneId, { fromMs, toMs: now });
  const days = [...new Set(hours.map(({ startsAt }) => toDay(startsAt)))];
  const known = await readDaysOfRules(db, zoneId, days);
  const rows = known.filter((row) => isReadCompletely(row, hours));
  const { above, early, confirmedDays } = judgeMetrics(rows, { settleMs });
  for (const [day, counts] of Map.groupBy(early, (count) => count.day)) {
    const dueAt = Math.max(finalFrom({ day }, settleMs), now + AGREE_MS);
    await askRulesAgain(db, zoneId, rulesOf(counts), dueAt);
  }
  const byDay = Map.groupBy(above, ({ day }) => day);
  const proven = byDay.size === 0 ? {} : await readProvenDays(db, zoneId);
  for (const [day, counts] of byDay) {
    if (!mustProveAnew(now, counts, proven[day])) continue;
    const [reason = ""] = counts.map(describe);
    const noted: ProvenDay = {
      at: now,
      proofs: (proven[day]?.proofs ?? 0) + 1,
      counts: Object.fromEntries(counts.map(({ ruleId, platform }) => [ruleId, platform])),
    };
    const start = Date.parse(day);
    const ofDay = hours.flatMap(({ startsAt }) =>
      startsAt >= Math.max(start, horizonAt(now)) && startsAt < start + DAY_MS ? [startsAt] : [],
    );
    const reopened = await inTransaction(database, async ({ tx }) => {
      const given = ofDay.map((startsAt) => ({ startsAt, reason }));
      const withdrawn = await reopenHours(tx, zoneId, given, now);
      // Looks that began at once could share the fault that hid the difference.
      await proveAnew(tx, zoneId, ofDay, now + AGREE_MS);
      await askRulesAgain(tx, zoneId, rulesOf(counts), now + AGREE_MS);
      const kept = Object.fromEntries(Object.entries(proven).filter(([other]) => days.includes(other)));
      await writeProvenDays(tx, zoneId, { ...kept, [day]: noted }, now);
      return withdrawn.length;
    });
    log.warn({ zoneId, day, reason, reopened }, "day reopened by metrics");
  }
  return { confirmedDays, above: byDay };
}

function describe({ platform, ruleId, day, stored }: MetricAbove): string {
  return `The platform's metrics count ${platform} events of rule ${ruleId} on ${day}, but ${stored} are stored.`;
}

function rulesOf(counts: readonly MetricAbove[]): string[] {
  return counts.map(({ ruleId }) => ruleId);
}
