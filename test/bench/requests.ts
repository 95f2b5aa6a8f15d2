import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { migrate } from "#db/migrate.ts";
import { createEmulator, type Emulator } from "#emulator/emulator.ts";
import { planTicks } from "#jobs/index.ts";
import { readPauses } from "#lib/cron.ts";
import { HOUR_MS } from "#lib/units.ts";
import { startEmbeddedPostgres } from "#store/embedded/postgres.ts";
import { isConcerned } from "../faults/concerned-jobs.ts";
import { createReplica, REPLICA_SETTINGS, type Replica, ZONE } from "../faults/replica.ts";
import { ROUTES, type Route } from "../support/liar/lie.ts";
import { type LyingPlatform, startLyingPlatform } from "../support/liar/lying-platform.ts";

const START = Date.UTC(2026, 10, 20, 15, 30);
const STEP_MS = 10_000;
const BETWEEN_JOBS_MS = 500;

export interface RequestsBenchOptions {
  /** Simulated hours after the first start. */
  readonly hours: number;
  /** Counts of the one zone. */
  readonly eventsPerSecond: number;
  readonly onProgress: (done: number, what: string) => void;
}

/** Requests of one simulated hour, and the hours that were sealed when it ended. */
export type HourOfRequests = Readonly<Record<Route, number>> & { readonly sealed: number };

/**
 * What one zone costs the platform: the jobs that read events and decide about hours, run by their ticks and by the jobs
 * that ask for others, over a platform that tells the truth. The emulator's clock is driven, so an hour takes seconds.
 */
export async function benchRequests(options: RequestsBenchOptions): Promise<HourOfRequests[]> {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-requests-"));
  chmodSync(folder, 0o755);
  const postgres = await startEmbeddedPostgres({ dataDir: folder, settings: ["fsync=off"] });
  const { eventsPerSecond } = options;
  const emulator = await createEmulator({ zones: [ZONE], eventsPerSecond, clock: () => START });
  const now = () => emulator.now();
  const counter = await startLyingPlatform({ url: emulator.url, now, isWitnessed: false });
  const asked: string[] = [];
  try {
    await migrate({ url: postgres.url });
    const replica = createReplica({
      databaseUrl: postgres.url,
      platformUrl: counter.url,
      accessKey: emulator.accessKey,
      clock: now,
      callTimeoutMs: 60_000,
      onEnqueue: (job) => void asked.push(job),
    });
    try {
      return await runHours({ emulator, counter, replica, asked }, options);
    } finally {
      await replica.close();
    }
  } finally {
    await counter.close();
    await emulator.close();
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

interface Service {
  readonly emulator: Emulator;
  readonly counter: LyingPlatform;
  readonly replica: Replica;
  /** Jobs that other jobs have asked for. */
  readonly asked: string[];
}

async function runHours(
  service: Service,
  { hours, onProgress }: RequestsBenchOptions,
): Promise<HourOfRequests[]> {
  const done: HourOfRequests[] = [];
  let before = readCounts(service);
  for (let hour = 0; hour < hours; hour++) {
    for (let step = 0; step < HOUR_MS / STEP_MS; step++) {
      await runStep(service, hour * HOUR_MS + step * STEP_MS);
      onProgress((hour + (step * STEP_MS) / HOUR_MS) / hours, `hour ${hour + 1} of ${hours}`);
    }
    const counts = readCounts(service);
    const requests = Object.fromEntries(ROUTES.map((route) => [route, counts[route] - before[route]]));
    done.push({ ...(requests as Record<Route, number>), sealed: await countSealed(service.replica) });
    before = counts;
  }
  return done;
}

/** Runs every job whose tick is due, then the jobs that they enqueued. */
async function runStep({ emulator, replica, asked }: Service, elapsedMs: number): Promise<void> {
  const endsAt = START + elapsedMs + STEP_MS;
  const run = async (job: string) => {
    await replica.run(job);
    emulator.advance(BETWEEN_JOBS_MS);
  };
  for (const { job, expression } of planTicks({ zoneIds: [ZONE], destinations: [] }, REPLICA_SETTINGS)) {
    if (isConcerned(job) && elapsedMs % readPauses(expression).longestMs === 0) await run(job);
  }
  while (asked.length > 0) {
    const jobs = new Set(asked.splice(0).filter(isConcerned));
    for (const job of jobs) await run(job);
  }
  if (emulator.now() < endsAt) emulator.advance(endsAt - emulator.now());
}

function readCounts({ counter }: Service): Record<Route, number> {
  const none = Object.fromEntries(ROUTES.map((route) => [route, 0])) as Record<Route, number>;
  return { ...none, ...counter.requests().get(ZONE) };
}

async function countSealed({ database }: Replica): Promise<number> {
  const { rows } = await database.pool.query<{ sealed: number }>(
    "select count(*)::int as sealed from coverage_windows where state = 'sealed'",
  );
  return rows[0]?.sealed ?? 0;
}

/** A table for people: the hour of the first start, then each hour by itself, then their mean. */
export function reportRequests(hours: readonly HourOfRequests[]): string {
  const columns = [...ROUTES, "sealed"] as const;
  const line = (name: string, values: readonly (number | string)[]) =>
    `${name.padEnd(12)}${values.map((value) => String(value).padStart(9)).join("")}`;
  const later = hours.slice(1);
  const mean = (column: (typeof columns)[number]) =>
    (later.reduce((sum, hour) => sum + hour[column], 0) / later.length).toFixed(1);
  return [
    "requests per zone and hour",
    line("hour", columns),
    ...hours.map((hour, index) =>
      line(
        index === 0 ? "first start" : String(index + 1),
        columns.map((c) => hour[c]),
      ),
    ),
    ...(later.length > 0 ? [line("mean from 2", ROUTES.map(mean))] : []),
    "",
  ].join("\n");
}
