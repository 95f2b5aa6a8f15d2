import { z } from "zod";
import type { Database, Queryable } from "../db/client.ts";
import { enterHours, lockOpenHours } from "../db/queries/covered-hours.ts";
import { decideHours, type HourVerdict, readFullPasses } from "../db/queries/seal-windows.ts";
import { inTransaction } from "../db/transaction.ts";
import type { Clock } from "../src/clock.ts";
import { HOUR_MS, horizonAt, startOfHour, toDay } from "../src/coverage/horizon.ts";
import { FIRST_WATCHED, judgeHour } from "../src/coverage/judge-hour.ts";
import type { Log } from "../src/log.ts";
import { type AnyJob, defineJob } from "../src/queue/define-job.ts";

export interface SealWindowsDeps {
  readonly database: Database;
  readonly clock: Clock;
  readonly log: Log;
  /** Until when an event may still appear after its time. */
  readonly settleMs: number;
  /** Told after every run: hours may be lost, or about to be. */
  readonly afterSeal: () => Promise<unknown>;
}

/**
 * Decides the hours of one zone that have ended: sealed where the evidence is whole, a gap where the platform has begun
 * to forget an hour without it. Both for good. Judged and written under the rows' locks, in one transaction: what is
 * stored meanwhile waits, and a copy of this job finds them decided.
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
      const verdicts = await inTransaction(database, async ({ tx }) => {
        const decided = await judgeHours(tx, { zoneId, firstHour }, now, deps.settleMs);
        await decideHours(tx, zoneId, decided, now);
        return decided;
      });
      const gaps = verdicts.filter(({ state }) => state === "gap");
      const lost = gaps.filter(({ reason }) => reason !== FIRST_WATCHED);
      const facts = {
        zoneId,
        sealed: verdicts.length - gaps.length,
        gaps: lost.length,
        unwatched: gaps.length - lost.length,
      };
      if (lost[0] !== undefined) log.error({ ...facts, from: new Date(lost[0].startsAt) }, "hours lost");
      else if (verdicts.length > 0) log.info(facts, "hours decided");
      await deps.afterSeal();
    },
  });
}

async function judgeHours(
  tx: Queryable,
  { zoneId, firstHour }: { zoneId: number; firstHour: number },
  now: number,
  settleMs: number,
): Promise<HourVerdict[]> {
  const hours = await lockOpenHours(tx, zoneId, now - HOUR_MS + 1);
  const passes = await readFullPasses(tx, zoneId);
  return hours.flatMap((hour): HourVerdict[] => {
    const { startsAt } = hour;
    const fullPassStartedAt = passes.get(toDay(startsAt)) ?? null;
    const verdict = judgeHour(
      now,
      { ...hour, fullPassStartedAt, isFirst: startsAt === firstHour },
      { settleMs },
    );
    if (verdict.state === "open") return [];
    const reason = verdict.state === "gap" ? verdict.reason : null;
    return [{ startsAt, state: verdict.state, reason, evidence: verdict.evidence }];
  });
}
