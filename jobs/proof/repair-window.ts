import { z } from "zod";
import { holdLease, type OwnedLease } from "#db/postgres/hold-lease.ts";
import { claimRepair, readDueCells } from "#db/proof/rule-cells.ts";
import type { Log } from "#lib/log.ts";
import { HOUR_MS } from "#lib/units.ts";
import { horizonAt } from "#model/horizon.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { planRepairs, type Repair } from "#proof/rules/plan-search.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import { type CopiedPages, type CopySearchDeps, copySearch } from "../ingest/copy-search.ts";

const LEASE_TTL_MS = 15_000;
/** A repair that found nothing is tried again after this long, then after twice as long, up to the longest pause. */
const FIRST_PAUSE_MS = 60_000;
const LONGEST_PAUSE_MS = 3_600_000;

export interface RepairWindowDeps extends CopySearchDeps {
  readonly log: Log;
  /** Called when events were found, because the counts should be compared again. */
  readonly afterRepair: (zoneId: number) => Promise<unknown>;
}

/**
 * Searches exactly the cells of one zone (rule and hour) that hold fewer events than the platform counts, and stores
 * the results. A repair is counted and postponed before it begins, so a killed repair is neither lost nor repeated at
 * once.
 */
export function createRepairWindowJob(deps: RepairWindowDeps): AnyJob {
  return defineJob({
    name: "repair-window",
    queue: "ingest",
    payload: z.strictObject({ zoneId: z.int() }),
    attempts: 3,
    timeoutMs: 600_000,
    async run({ zoneId }, signal) {
      const name = `repair-window.${zoneId}`;
      await holdLease(deps.database, { name, ttlMs: LEASE_TTL_MS }, (lease) =>
        repairZone(deps, { zoneId, lease }, AbortSignal.any([signal, lease.lost])),
      );
    },
  });
}

interface Zone {
  readonly zoneId: number;
  readonly lease: OwnedLease;
}

/**
 * Repairs the zone's hours. A failed search of an hour does not stop the repair of the others; two failures in a row
 * end the run.
 */
async function repairZone(deps: RepairWindowDeps, zone: Zone, signal: AbortSignal): Promise<void> {
  const { database, clock, log } = deps;
  const { zoneId } = zone;
  const nowMs = clock();
  const due = await readDueCells(database.db, zoneId, { nowMs, horizonMs: horizonAt(nowMs) });
  const failures: unknown[] = [];
  let failuresInARow = 0;
  let found = 0;
  for (const repair of planRepairs(due)) {
    if (signal.aborted) break;
    const { startsAt } = repair;
    const pauses = { firstMs: FIRST_PAUSE_MS, longestMs: LONGEST_PAUSE_MS };
    await claimRepair(database.db, zoneId, { startsAt, nowMs, ...pauses });
    try {
      const { pages, inserted } = await repairHour(deps, zone, repair, signal);
      found += inserted;
      failuresInARow = 0;
      const rules = repair.ruleIds?.length ?? "all";
      log.info({ zoneId, hour: new Date(startsAt), rules, pages, inserted }, "hour repaired");
    } catch (thrown) {
      failures.push(thrown);
      const isRefused = thrown instanceof EdgeError && thrown.disposition === "wait";
      if (++failuresInARow === 2 || isRefused) break;
    }
  }
  if (found > 0) await deps.afterRepair(zoneId);
  if (failures.length > 0 && !signal.aborted) throw failures[0];
}

async function repairHour(
  deps: RepairWindowDeps,
  { zoneId, lease }: Zone,
  { startsAt, ruleIds }: Repair,
  signal: AbortSignal,
): Promise<Pick<CopiedPages, "pages" | "inserted">> {
  const span = { zoneId, lease, from: startsAt, to: startsAt + HOUR_MS, expectNew: false };
  if (ruleIds === null) return copySearch(deps, span, signal);
  let [pages, inserted] = [0, 0];
  for (const ruleId of ruleIds) {
    const filters = [{ field: "ruleId" as const, op: "eq" as const, value: [ruleId] }];
    const copied = await copySearch(deps, { ...span, filters }, signal);
    pages += copied.pages;
    inserted += copied.inserted;
  }
  return { pages, inserted };
}
