/** Jobs and the times at which they run. */
import { z } from "zod";
import { readReplicas, type SeenReplica } from "#db/postgres/leases.ts";
import { assessService } from "#jobs/health/conditions/processes.ts";
import { nextRuns } from "#lib/cron.ts";
import { formatIso, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { LAST_RESULTS } from "#model/kinds.ts";
import { type LastRun, TICK_NAMES, TICKS, type Tick, type TickName } from "#model/schedule.ts";
import { IsoTime, Name, requireEveryZone, toIsoOrNull } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";

const TickOfJob = z
  .object({
    expression: Name.nullable().describe("A cron expression of six fields, in UTC."),
    lastRun: z
      .object({ at: IsoTime, result: z.enum(LAST_RESULTS), why: Name.nullable() })
      .nullable()
      .describe("The last run in any process, and why it did nothing or failed."),
    nextAt: IsoTime.nullable(),
    off: Name.nullable().describe("Why there is no next run."),
  })
  .meta({ id: "Tick" });

const Job = z
  .object({
    job: Name,
    runs: z
      .record(z.string(), z.number())
      .describe("Attempts since the start of the answering process, by outcome."),
    meanSeconds: z.number().nullable(),
    lastSuccessAt: IsoTime.nullable(),
    tick: TickOfJob.nullable().describe("When the job is enqueued. Null: only when there is work."),
  })
  .meta({ id: "Job" });
type Job = z.infer<typeof Job>;

export const listJobs = defineQuery({
  name: "jobs.list",
  summary: "List background jobs with their last and next runs",
  description:
    "Runs, durations and the last success are those of the process that answers. Ticks are those of the whole installation.",
  http: ["GET", "/api/v1/jobs"],
  tag: "Service",
  scope: "read",
  input: z.strictObject({}),
  output: z.object({ items: z.array(Job) }),
  command: {
    examples: ["jobs list", "jobs list --json"],
    help: "Shows the cron expression of each tick (second, minute, hour, day of month, month, day of week; UTC), the last run of its job in any process, with the reason if it did nothing, and the next run. Processes report this every 15 seconds. The configuration file changes expressions under schedule (docs/configuration.md).",
    columns: [
      { head: "JOB", get: ({ job }) => job },
      { head: "EXPRESSION", get: ({ tick }) => tick?.expression ?? "-" },
      { head: "LAST RUN (UTC)", get: ({ tick }) => showAt(tick?.lastRun?.at) },
      { head: "NEXT RUN (UTC)", get: ({ tick }) => showAt(tick?.nextAt) },
      { head: "RESULT", get: describeResult },
    ],
  },
  run: async ({ db, caller, service }) => {
    requireEveryZone(caller);
    const runs = new Map((await service.readJobRuns()).map((one) => [one.job, one]));
    const ticks = new Map(
      listTicks(await readReplicas(db)).map(({ job, ...tick }) => [job as string, tick] as const),
    );
    const items = [...new Set([...runs.keys(), ...ticks.keys()])].sort().map((job) => {
      const done = runs.get(job);
      return {
        job,
        runs: { ...done?.runs },
        meanSeconds: done?.meanSeconds ?? null,
        lastSuccessAt: toIsoOrNull(done?.lastSuccessAt ?? null),
        tick: ticks.get(job) ?? null,
      };
    });
    return { items };
  },
});

function showAt(at: string | null | undefined): string {
  return at === null || at === undefined ? "-" : showTime(at);
}

function describeResult({ tick }: Job): string {
  if (tick === null) return "runs only when there is work";
  const { lastRun, off } = tick;
  const result = lastRun === null ? [] : [lastRun.result, lastRun.why].filter((part) => part !== null);
  return toLine(
    [...(off === null ? [] : [off]), result.join(": ")].filter((part) => part !== "").join("; "),
    200,
  );
}

/** A tick as the processes of the service report it. Times in ISO 8601. */
interface ListedTick {
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
function listTicks(rows: readonly SeenReplica[]): ListedTick[] {
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
