import { z } from "zod";
import type { Database, Queryable } from "../../db/client.ts";
import { proveAnew, readCoveredHours } from "../../db/coverage/covered-hours.ts";
import { readHourContents } from "../../db/coverage/hour-contents.ts";
import { reopenHours } from "../../db/coverage/reopen-hours.ts";
import {
  noteAgreement,
  noteContradiction,
  readSuspicion,
  type Suspicion,
} from "../../db/coverage/zone-suspicions.ts";
import { askRulesAgain, readDaysOfRules } from "../../db/detection/rule-metrics.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { AGREE_MS } from "../../src/coverage/hour-proof.ts";
import { isProven } from "../../src/coverage/judge-hour.ts";
import {
  finalFrom,
  isReadCompletely,
  judgeMetrics,
  type MetricAbove,
  metricKey,
} from "../../src/coverage/judge-metrics.ts";
import type { Log } from "../../src/lib/log.ts";
import { HOUR_MS } from "../../src/lib/units.ts";
import type { CoveredHour } from "../../src/model/covered-hour.ts";
import { horizonAt, startOfDay, toDay } from "../../src/model/horizon.ts";

export interface JudgeMetricsDeps {
  readonly database: Database;
  readonly log: Log;
  readonly settleMs: number;
}

/** Result of comparing the metrics of a zone. */
export interface MetricsVerdict {
  /** UTC days, epoch ms of their start, on which the metrics of every rule agree with the stored events. */
  readonly confirmedDays: ReadonlySet<number>;
  /** Counts above the stored ones that a second proof of their day has not explained, by day. */
  readonly accepted: ReadonlyMap<string, readonly MetricAbove[]>;
}

/** By `metricKey`. */
const Counts = z.record(z.string(), z.number()).default({});
const Details = z.object({
  /** The counts that make the metrics suspect. */
  pending: Counts,
  /** When each pending count was found, epoch ms. Left out by earlier versions. */
  since: Counts,
  /** The counts that a second proof of their day did not explain. */
  accepted: Counts,
});

const HOURS_OF_DAY = 24;

/**
 * Compares the platform's daily metrics with the stored events of the days that had been read completely. A count
 * above ours makes the metrics suspect and reopens the proof of the day. If the count is still above after every hour
 * of its day was proven with new looks, no route shows the difference. The count is then accepted, whatever the others
 * are, and the evidence names it. Metrics that were above before their day had settled are fetched again after that.
 */
export async function judgeZoneMetrics(
  deps: JudgeMetricsDeps,
  zoneId: number,
  now: number,
): Promise<MetricsVerdict> {
  const { database, log, settleMs } = deps;
  const fromMs = startOfDay(horizonAt(now));
  const hours = await readCoveredHours(database.db, zoneId, { fromMs, toMs: now });
  const days = [...new Set(hours.map(({ startsAt }) => toDay(startsAt)))];
  const known = await readDaysOfRules(database.db, zoneId, days);
  const rows = known.filter((row) => isReadCompletely(row, hours));
  const { above, early, confirmedDays } = judgeMetrics(rows, { settleMs });
  for (const [day, counts] of Map.groupBy(early, (count) => count.day)) {
    const dueAt = Math.max(finalFrom({ day }, settleMs), now + AGREE_MS);
    await askRulesAgain(database.db, zoneId, rulesOf(counts), dueAt);
  }
  const suspicion = await readSuspicion(database.db, zoneId, "metrics");
  const open = suspicion?.clearedAt === null ? suspicion : null;
  const details = Details.catch({ pending: {}, since: {}, accepted: {} }).parse(suspicion?.details ?? {});
  const isAccepted = (count: MetricAbove) => count.platform <= (details.accepted[metricKey(count)] ?? 0);
  const fresh = above.filter((count) => !isAccepted(count));
  const verdict = {
    confirmedDays,
    accepted: Map.groupBy(above.filter(isAccepted), ({ day }) => day),
  };
  if (fresh.length > 0) await suspectMetrics(deps, zoneId, { fresh, details, open, hours, now });
  else if (
    open !== null &&
    (await noteAgreement(database.db, { zoneId, route: "metrics", atMs: now }, AGREE_MS))
  )
    log.info({ zoneId, route: "metrics" }, "route stopped being suspect");
  return verdict;
}

interface Excess {
  /** Counts above the stored ones that are not accepted. At least one. */
  readonly fresh: readonly MetricAbove[];
  readonly details: z.infer<typeof Details>;
  /** Null while the metrics are not suspect. */
  readonly open: Suspicion | null;
  readonly hours: readonly CoveredHour[];
  readonly now: number;
}

/** Reopens the days of counts that have risen, and accepts counts that a second proof has not explained. */
async function suspectMetrics(
  { database, log, settleMs }: JudgeMetricsDeps,
  zoneId: number,
  { fresh, details, open, hours, now }: Excess,
): Promise<void> {
  /** Returns null for a count that has risen. */
  const pendingSince = (count: MetricAbove) => {
    const key = metricKey(count);
    if (open === null || count.platform > (details.pending[key] ?? 0)) return null;
    return details.since[key] ?? open.since;
  };
  const risen = fresh.filter((count) => pendingSince(count) === null);
  const askedAgain = fresh.filter((count) => count.fetchedAt >= (pendingSince(count) ?? now) + AGREE_MS);
  const proven = await listProvenDays(database.db, zoneId, { counts: askedAgain, hours, now, settleMs });
  const unexplained = askedAgain.filter(({ day }) => proven.has(day));
  const pending = fresh.filter((count) => !unexplained.includes(count));
  const [reason = ""] = [...risen, ...fresh].map(describe);
  await inTransaction(database, async ({ tx }) => {
    const look = { zoneId, route: "metrics" as const, atMs: now };
    const after = {
      pending: byKey(pending, ({ platform }) => platform),
      since: byKey(pending, (count) => pendingSince(count) ?? now),
      accepted: { ...details.accepted, ...byKey(unexplained, ({ platform }) => platform) },
    };
    await noteContradiction(tx, look, { reason, details: after });
    if (risen.length > 0) await proveDaysAnew(tx, zoneId, { counts: risen, reason, now });
    await askRulesAgain(tx, zoneId, rulesOf(pending), now + AGREE_MS);
  });
  if (risen.length > 0) log.warn({ zoneId, route: "metrics", reason }, "route became suspect");
  const [first] = unexplained;
  if (first !== undefined)
    log.error(
      { zoneId, reason: describe(first), counts: unexplained.length },
      "metrics excess left unexplained",
    );
}

function describe({ platform, ruleId, day, stored }: MetricAbove): string {
  return `The platform's metrics count ${platform} events of rule ${ruleId} on ${day}, but ${stored} are stored.`;
}

function rulesOf(counts: readonly MetricAbove[]): string[] {
  return counts.map(({ ruleId }) => ruleId);
}

function byKey(counts: readonly MetricAbove[], read: (count: MetricAbove) => number): Record<string, number> {
  return Object.fromEntries(counts.map((count) => [metricKey(count), read(count)]));
}

async function proveDaysAnew(
  tx: Queryable,
  zoneId: number,
  { counts, reason, now }: { counts: readonly MetricAbove[]; reason: string; now: number },
): Promise<void> {
  const days = new Set(counts.map(({ day }) => Date.parse(day)));
  const hours = [...days].flatMap((day) =>
    Array.from({ length: HOURS_OF_DAY }, (_, hour) => day + hour * HOUR_MS).filter(
      (at) => at >= horizonAt(now),
    ),
  );
  await reopenHours(
    tx,
    zoneId,
    hours.map((startsAt) => ({ startsAt, reason })),
    now,
  );
  await proveAnew(tx, zoneId, hours, now);
}

/**
 * Returns the days of the counts of which every hour that the platform still serves is proven by looks that began after
 * the reopening.
 */
async function listProvenDays(
  db: Queryable,
  zoneId: number,
  {
    counts,
    hours,
    now,
    settleMs,
  }: { counts: readonly MetricAbove[]; hours: readonly CoveredHour[]; now: number; settleMs: number },
): Promise<ReadonlySet<string>> {
  const proven = new Set(counts.map(({ day }) => day));
  for (const hour of hours) {
    const day = toDay(hour.startsAt);
    if (!proven.has(day) || hour.state !== "open" || hour.startsAt < horizonAt(now)) continue;
    const stored = await readHourContents(db, zoneId, hour.startsAt);
    if (!isProven(now, hour, stored, { settleMs, confirmedDays: new Set() })) proven.delete(day);
  }
  return proven;
}
