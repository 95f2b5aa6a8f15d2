import { z } from "zod";
import { type RequestedRun, reportRun, startRun } from "#db/health/requested-runs.ts";
import { holdLease } from "#db/postgres/hold-lease.ts";
import { messageOf, ServiceError, toError } from "#lib/errors.ts";
import type { RunKind } from "#model/kinds.ts";
import { type AnyJob, defineJob } from "#store/queue/define-job.ts";
import type { JobContext } from "../context.ts";

const LEASE_TTL_MS = 15_000;
/** A backfill continues where it stopped, so it may be begun often. A verification begins anew. */
const MOST_STARTS: Readonly<Record<RunKind, number>> = { backfill: 100, verify: 4, "verify-archive": 4 };
const REPORT_EVERY_MS = 1_000;

interface RunProgress {
  /** 0 to 1. */
  readonly share: number;
  readonly step: string;
}

/** Only the workers of archive-days are sure to have the archive's folder. */
const JOBS = [
  { name: "run-requested", queue: "ingest", kinds: ["backfill", "verify"] },
  { name: "verify-archive", queue: "derive", kinds: ["verify-archive"] },
] as const;

/** Returns the job that executes runs of this kind. */
export function jobOfRun(kind: RunKind): (typeof JOBS)[number]["name"] {
  return kind === "verify-archive" ? "verify-archive" : "run-requested";
}

/** Executes a run from where it stopped, and returns its result. */
export type ExecuteRun = (
  run: RequestedRun,
  how: { readonly signal: AbortSignal; readonly onProgress: (progress: RunProgress) => void },
) => Promise<unknown>;

export interface RunRequestedDeps extends Pick<JobContext, "database" | "clock"> {
  readonly executeRun: ExecuteRun;
}

/**
 * Returns the jobs that execute what a person started: backfills and verifications. A lease per run keeps a second runner
 * away. A run whose process was killed has no end, so the sweep enqueues it again.
 */
export function createRunJobs(deps: RunRequestedDeps): AnyJob[] {
  return JOBS.map((job) => createRunJob(deps, job));
}

function createRunJob(deps: RunRequestedDeps, { kinds, ...job }: (typeof JOBS)[number]): AnyJob {
  const { database, clock } = deps;
  return defineJob({
    ...job,
    payload: z.strictObject({ id: z.int() }),
    // The sweep enqueues the run again.
    attempts: 1,
    timeoutMs: 30 * 60_000,
    async run({ id }, signal) {
      await holdLease(database, { name: `requested-run.${id}`, ttlMs: LEASE_TTL_MS }, async (lease) => {
        const run = await startRun(database.db, { id, kinds, nowMs: clock() });
        if (run === null) return;
        if (run.starts > MOST_STARTS[run.kind]) {
          const problem = run.problem ?? "the process was stopped each time";
          const text = `Given up after ${run.starts - 1} starts. The last one: ${problem}`;
          await reportRun(database.db, id, { problem: text, step: null, endedAt: clock() });
          return;
        }
        await execute(deps, run, AbortSignal.any([signal, lease.lost]));
      });
    },
  });
}

async function execute(
  { database, clock, executeRun }: RunRequestedDeps,
  run: RequestedRun,
  signal: AbortSignal,
) {
  let reportedAt = Number.NEGATIVE_INFINITY;
  let last: Promise<unknown> = Promise.resolve();
  const onProgress = ({ share, step }: RunProgress) => {
    const at = performance.now();
    if (at - reportedAt < REPORT_EVERY_MS) return;
    reportedAt = at;
    const percent = Math.min(99, Math.floor(share * 100));
    // One after the other. A report that fails is made up for by the next one.
    last = last.then(() => reportRun(database.db, run.id, { percent, step })).catch(() => undefined);
  };
  try {
    const result = await executeRun(run, { signal, onProgress });
    await last;
    await reportRun(database.db, run.id, {
      percent: 100,
      step: null,
      problem: null,
      result,
      endedAt: clock(),
    });
  } catch (thrown) {
    await last;
    // The service stops, or another process has the lease: the run goes on later.
    if (signal.aborted) return;
    const error = toError(thrown);
    const isFinal = error instanceof ServiceError && error.disposition === "give-up";
    await reportRun(database.db, run.id, {
      problem: messageOf(error).slice(0, 1_000),
      step: null,
      ...(isFinal ? { endedAt: clock() } : {}),
    });
  }
}
