import type { SeenReplica } from "#db/service/leases.ts";
import { nextRuns } from "#lib/cron.ts";
import { formatIso } from "#lib/format.ts";
import { type LastRun, TICK_NAMES, TICKS, type Tick, type TickName } from "#model/schedule.ts";
import { assessService } from "./service-life.ts";

/** A tick as the processes of the service report it. Times in ISO 8601. */
export interface ListedTick {
  readonly job: TickName;
  /** Null if no process has ever had the tick. */
  readonly expression: string | null;
  /** The last run in any process. */
  readonly lastRun: (Omit<LastRun, "at"> & { readonly at: string }) | null;
  /** Null while no process that is alive has the tick. */
  readonly nextAt: string | null;
  /** Reason why there is no next run. */
  readonly off: string | null;
}

/** Returns every tick, from what the processes last reported, a few seconds ago. */
export function listTicks(rows: readonly SeenReplica[]): ListedTick[] {
  const isAlive = assessService(rows).replicas.map(({ state }) => state === "alive");
  return TICK_NAMES.map((job) => {
    const reports = rows.flatMap(({ ticks: { [job]: report } }, index) =>
      report === undefined ? [] : [{ ...report, isAlive: isAlive[index] === true }],
    );
    const alive = reports.find((report) => report.isAlive);
    const [last] = reports.flatMap(({ lastRun }) => lastRun ?? []).sort((a, b) => b.at - a.at);
    const [next] = alive === undefined ? [] : nextRuns(alive.expression, 1);
    const { needs }: Tick = TICKS[job];
    const off = `no process runs it${needs === undefined ? "" : `; it needs ${needs}`}`;
    return {
      job,
      expression: (alive ?? reports[0])?.expression ?? null,
      lastRun: last === undefined ? null : { ...last, at: formatIso(last.at) },
      nextAt: next === undefined ? null : formatIso(next),
      off: alive === undefined ? off : null,
    };
  });
}
