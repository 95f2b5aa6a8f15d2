import { z } from "zod";
import type { Database, Queryable } from "../../db/client.ts";
import { proveAnew, readCoveredHours } from "../../db/coverage/covered-hours.ts";
import { readHourContents } from "../../db/coverage/hour-contents.ts";
import { reopenHours } from "../../db/coverage/reopen-hours.ts";
import { noteAgreement, noteContradiction, readSuspicion } from "../../db/coverage/zone-suspicions.ts";
import { askRulesAgain, readDaysOfRules } from "../../db/detection/rule-metrics.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { AGREE_MS } from "../../src/coverage/hour-proof.ts";
import { isProven } from "../../src/coverage/judge-hour.ts";
import {
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

/** The counts that made the metrics suspect, and those that a second proof did not explain; by `metricKey`. */
const Details = z.object({
  pending: z.record(z.string(), z.number()).default({}),
  accepted: z.record(z.string(), z.number()).default({}),
});

const HOURS_OF_DAY = 24;

/**
 * Compares the platform's daily metrics with the stored events of the days that had been read completely. A count
 * above ours makes the metrics suspect and reopens the proof of the day. If the count is still above after every hour
 * was proven with new looks, no route shows the difference. The count is then accepted, and the evidence names it.
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
  const { above, confirmedDays } = judgeMetrics(rows, { settleMs });
  const suspicion = await readSuspicion(database.db, zoneId, "metrics");
  const isOpen = suspicion !== null && suspicion.clearedAt === null;
  const { pending, accepted } = Details.catch({ pending: {}, accepted: {} }).parse(suspicion?.details ?? {});
  const isAccepted = (count: MetricAbove) => count.platform <= (accepted[metricKey(count)] ?? 0);
  const fresh = above.filter((count) => !isAccepted(count));
  const verdict = {
    confirmedDays,
    accepted: Map.groupBy(above.filter(isAccepted), ({ day }) => day),
  };
  const look = { zoneId, route: "metrics" as const, atMs: now };
  const [first] = fresh;
  if (first === undefined) {
    if (isOpen && (await noteAgreement(database.db, look, AGREE_MS)))
      log.info({ zoneId, route: "metrics" }, "route stopped being suspect");
    return verdict;
  }
  const reason = `The platform's metrics count ${first.platform} events of rule ${first.ruleId} on ${first.day}, but ${first.stored} are stored.`;
  const isPending = isOpen && fresh.every((count) => pending[metricKey(count)] === count.platform);
  const keys = Object.fromEntries(fresh.map((count) => [metricKey(count), count.platform]));
  const ruleIds = fresh.map(({ ruleId }) => ruleId);
  if (!isPending) {
    await inTransaction(database, async ({ tx }) => {
      await noteContradiction(tx, look, { reason, details: { pending: keys, accepted } });
      await proveDaysAnew(tx, zoneId, { fresh, reason, now });
      await askRulesAgain(tx, zoneId, ruleIds, now + AGREE_MS);
    });
    log.warn({ zoneId, route: "metrics", reason }, "route became suspect");
    return verdict;
  }
  const since = suspicion.since;
  const isAskedAgain = fresh.every(({ fetchedAt }) => fetchedAt >= since + AGREE_MS);
  const isUnexplained =
    isAskedAgain && (await areProven(database.db, zoneId, { fresh, hours, now, settleMs }));
  const details = isUnexplained
    ? { pending: {}, accepted: { ...accepted, ...keys } }
    : { pending: keys, accepted };
  await noteContradiction(database.db, look, { reason, details });
  if (isUnexplained) log.error({ zoneId, reason }, "metrics excess left unexplained");
  else await askRulesAgain(database.db, zoneId, ruleIds, now + AGREE_MS);
  return verdict;
}

async function proveDaysAnew(
  tx: Queryable,
  zoneId: number,
  { fresh, reason, now }: { fresh: readonly MetricAbove[]; reason: string; now: number },
): Promise<void> {
  const days = new Set(fresh.map(({ day }) => Date.parse(day)));
  const hours = [...days].flatMap((day) =>
    Array.from({ length: HOURS_OF_DAY }, (_, hour) => day + hour * HOUR_MS).filter(
      (at) => at >= horizonAt(now),
    ),
  );
  await reopenHours(
    tx,
    zoneId,
    hours.map((startsAt) => ({ startsAt, reason, isProvenAnew: true })),
    now,
  );
  await proveAnew(tx, zoneId, hours, now);
}

/**
 * Returns whether every hour of the days that the platform still serves is proven by looks that began after the
 * reopening.
 */
async function areProven(
  db: Queryable,
  zoneId: number,
  {
    fresh,
    hours,
    now,
    settleMs,
  }: { fresh: readonly MetricAbove[]; hours: readonly CoveredHour[]; now: number; settleMs: number },
): Promise<boolean> {
  const days = new Set(fresh.map(({ day }) => Date.parse(day)));
  const asked = hours.filter(({ startsAt }) => days.has(startOfDay(startsAt)) && startsAt >= horizonAt(now));
  for (const hour of asked) {
    if (hour.state !== "open") continue;
    const stored = await readHourContents(db, zoneId, hour.startsAt);
    if (!isProven(now, hour, stored, { settleMs, confirmedDays: new Set() })) return false;
  }
  return true;
}
