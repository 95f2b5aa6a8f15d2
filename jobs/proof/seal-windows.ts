/** Seals hours that are proven. */

import { z } from "zod";
import type { Queryable } from "#db/client.ts";
import { askRulesAgain, readDaysOfRules } from "#db/detection/rule-metrics.ts";
import { mergeDoubles } from "#db/ingest/merge-doubles.ts";
import { countUnreadable, dropQuarantined } from "#db/ingest/quarantine.ts";
import { acceptWithdrawn } from "#db/ingest/revise-events.ts";
import { eraseMergedRecords } from "#db/people/erase-events.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import {
  decideHours,
  enterHours,
  type HourVerdict,
  lockOpenHours,
  proveAnew,
  readCoveredHours,
} from "#db/proof/covered-hours.ts";
import { readKeptMs, readProvenDays, writeProvenDays } from "#db/proof/horizons.ts";
import { readHourContents } from "#db/proof/hour-contents.ts";
import { readSuspicions } from "#db/proof/platform-health.ts";
import { reopenHours } from "#db/proof/reopen-hours.ts";
import { DROP_AFTER_MS, HELD_BACK } from "#ingest/rules/read-page.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { horizonAt, KEPT_MS, startOfDay, startOfHour, toDay } from "#model/horizon.ts";
import type { ProvenDay } from "#model/zones.ts";
import { recordEraser } from "#people/rules/erasure-guard.ts";
import { AGREE_MS } from "#proof/rules/hour-proof.ts";
import {
  finalFrom,
  GIVE_UP_MS,
  isReadCompletely,
  judgeMetrics,
  type MetricAbove,
  mustProveAnew,
} from "#proof/rules/judge-counts.ts";
import { isCandidate, type JudgedZone, judgeHour, UNPREVENTABLE } from "#proof/rules/judge-hour.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";

interface SealWindowsDeps extends Pick<JobContext, "database" | "clock" | "log" | "settleMs"> {
  /** Called after every run, because hours may be lost or about to be lost. */
  readonly afterSeal: () => unknown;
}

/**
 * Decides the hours of one zone that have ended. An hour is sealed if its evidence is complete, and becomes a gap if the
 * platform has forgotten it before that. Hours are judged and written in one
 * transaction under the locks of their rows. Events that arrive meanwhile wait, and a concurrent run finds the hours
 * decided.
 */
export function createSealWindowsJob(deps: SealWindowsDeps): AnyJob {
  return defineJob({
    name: "seal-windows",
    queue: "derive",
    payload: z.strictObject({ zoneId: z.int() }),
    attempts: 3,
    timeoutMs: 60_000,
    async run({ zoneId }) {
      const { database, log } = deps;
      const now = deps.clock();
      const range = { fromMs: startOfHour(horizonAt(now)), toMs: startOfHour(now) };
      const firstHour = await enterHours(database.db, zoneId, range);
      const zone = await assessZone(deps, zoneId, now);
      const verdicts = await inTransaction(database, async ({ tx }) => {
        const decided = await judgeHours(tx, { zoneId, firstHour, ...zone }, now);
        await decideHours(tx, zoneId, decided, now);
        return decided;
      });
      const gaps = verdicts.filter(({ state }) => state === "gap");
      const lost = gaps.filter(({ reason }) => !UNPREVENTABLE.includes(reason ?? ""));
      const facts = {
        zoneId,
        sealed: verdicts.length - gaps.length,
        gaps: lost.length,
        unwatched: gaps.length - lost.length,
      };
      if (lost[0] !== undefined) log.error({ ...facts, from: new Date(lost[0].startsAt) }, "hours lost");
      else if (verdicts.length > 0) log.info(facts, "hours decided");
      await deps.afterSeal();
      return verdicts.length === 0 ? "no hour can be decided yet" : undefined;
    },
  });
}

/** Returns the inputs that apply to every hour of the zone. */
async function assessZone(deps: SealWindowsDeps, zoneId: number, now: number): Promise<JudgedZone> {
  const { database, settleMs } = deps;
  const { db } = database;
  const { confirmedDays, above } = await judgeZoneMetrics(deps, zoneId, now);
  const [suspicion] = await readSuspicions(db, [zoneId]);
  const keptMs = await readKeptMs(db, zoneId, now, GIVE_UP_MS);
  await dropQuarantined(db, zoneId, { reason: HELD_BACK, beforeMs: now - DROP_AFTER_MS });
  const unreadable = await countUnreadable(db, zoneId, { sinceMs: now - KEPT_MS, exceptReason: HELD_BACK });
  const state = { suspicion: suspicion?.reason ?? null, unreadable };
  return { settleMs, keptMs, confirmedDays, metricsAbove: above, ...state };
}

interface ZoneToJudge extends JudgedZone {
  readonly zoneId: number;
  readonly firstHour: number;
}

async function judgeHours(tx: Queryable, zone: ZoneToJudge, now: number): Promise<HourVerdict[]> {
  const { zoneId, firstHour } = zone;
  const hours = await lockOpenHours(tx, zoneId, now - HOUR_MS + 1);
  // Any other hour cannot be sealed now, so its events need not be read.
  const candidates = hours.flatMap((hour) => (isCandidate(now, hour, zone) ? [hour.startsAt] : []));
  let contents = await readHourContents(tx, zoneId, candidates);
  const verdicts: HourVerdict[] = [];
  const withdrawn: number[] = [];
  for (const hour of hours) {
    const { startsAt } = hour;
    const stored = contents.get(startsAt) ?? null;
    if (stored !== null && stored.doubled > 0) {
      // Merges the doubles. The next comparison of the counts shows losses that the doubles may have hidden.
      await eraseMergedRecords(tx, zoneId, await mergeDoubles(tx, zoneId, startsAt, now), recordEraser);
      // The other times of the doubles may be in later hours.
      const later = candidates.filter((candidate) => candidate > startsAt);
      contents = await readHourContents(tx, zoneId, later);
    }
    const verdict = judgeHour(now, { ...hour, stored, firstHour }, zone);
    if (verdict.state === "open") continue;
    const { state, evidence } = verdict;
    verdicts.push({ startsAt, state, reason: verdict.state === "gap" ? verdict.reason : null, evidence });
    if ("withdrawn" in evidence) withdrawn.push(startsAt);
  }
  await acceptWithdrawn(tx, zoneId, withdrawn, now);
  return verdicts;
}

type JudgeMetricsDeps = Pick<JobContext, "database" | "log" | "settleMs">;

/** Result of comparing the metrics of a zone. */
interface MetricsVerdict {
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
