import { z } from "zod";
import type { Classified } from "#archive/rules/sql/classify-requests.ts";
import { watchRules } from "#archive/rules/sql/count-requests.ts";
import type { Piece } from "#archive/rules/sql/to-condition.ts";
import {
  forgetDeletedPlans,
  listReviewPlans,
  type ReviewPlanRow,
  storePlanWatch,
} from "#db/detection/exclusions.ts";
import {
  MOST_WATCHED_MS,
  type RuleSeen,
  watchedFrom,
  watchPlan,
} from "#detection/rules/review/watch-plan.ts";
import { toError } from "#lib/errors.ts";
import { DAY_MS } from "#lib/units.ts";
import type { ActionStates } from "#model/action-class.ts";
import type { Span } from "#model/horizon.ts";
import type { KnownSource } from "#model/known-source.ts";
import { type AnyJob, defineJob, oneAtATime } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";

export interface WatchPlansDeps
  extends Pick<JobContext, "database" | "clock" | "log" | "zoneIds" | "knownSources" | "actions"> {
  /** Runs a statement over the classified requests of a zone. */
  readonly readRequests: (
    asked: { zoneId: number; span: Span; knownSources: readonly KnownSource[]; actions: ActionStates },
    wanted: { write: (classified: Classified) => Piece },
    signal: AbortSignal,
  ) => Promise<{ readonly rows: readonly string[] }>;
}

/**
 * Notes of each saved plan whether its zone follows it, which rules no longer do as planned, and which block more visitors than
 * it said. Conditions raise the alerts from these notes. Zones without a saved plan cost nothing. Everything is read from rows,
 * so any replica can run it, and several at once.
 */
export function createWatchPlansJob(deps: WatchPlansDeps): AnyJob {
  const { database, clock, log, zoneIds } = deps;
  return defineJob({
    name: "watch-plans",
    queue: "derive",
    payload: z.object({}),
    attempts: 2,
    timeoutMs: 120_000,
    run: oneAtATime(async (_payload, signal) => {
      await forgetDeletedPlans(database.db, clock() - DAY_MS);
      const plans = await listReviewPlans(database.db, zoneIds);
      if (plans.length === 0) return "no plan is saved";
      let failure: Error | null = null;
      for (const [zoneId, ofZone] of Map.groupBy(plans, (one) => one.zoneId)) {
        signal.throwIfAborted();
        try {
          await watchZone(deps, zoneId, ofZone, signal);
        } catch (thrown) {
          failure = toError(thrown);
          log.error({ err: failure, zoneId }, "saved plans not watched");
        }
      }
      if (failure !== null) throw failure;
      return undefined;
    }),
  });
}

/** Watches the plans of a zone, the newest first. */
async function watchZone(
  { database, readRequests, clock, knownSources, actions }: WatchPlansDeps,
  zoneId: number,
  plans: readonly ReviewPlanRow[],
  signal: AbortSignal,
): Promise<void> {
  const now = clock();
  const rules = [...new Set(plans.flatMap(({ plan }) => [...plan.block, ...plan.log]))];
  if (rules.length === 0) return;
  const from = Math.min(...plans.map(({ watch }) => watchedFrom(watch, now)));
  const read = async (spanFrom: number): Promise<RuleSeen[]> => {
    const asked = { zoneId, span: { from: spanFrom, to: now }, knownSources: knownSources(), actions };
    const write = (classified: Classified) => watchRules(classified, { rules, from });
    const { rows } = await readRequests(asked, { write }, signal);
    return rows.map((row) => JSON.parse(row) as RuleSeen);
  };
  const seen = await read(from);
  let whole: RuleSeen[] | null = null;
  let isNewest = true;
  for (const { id, plan, createdAt, watch: before } of plans) {
    const watched = { plan, savedAt: createdAt.getTime(), before };
    let watch = watchPlan(watched, seen, { now, isNewest });
    // Programs that come day after day are known by a week of requests only. They are no visitors.
    if (watch.hits.some(({ endedAt }) => endedAt === null)) {
      whole ??= await read(now - MOST_WATCHED_MS);
      watch = watchPlan(watched, whole, { now, isNewest });
    }
    await storePlanWatch(database.db, id, watch);
    isNewest &&= watch.followedSince === null;
  }
}
