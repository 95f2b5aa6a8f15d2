import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { startEmulatorProcess } from "#app/open-platform.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { startServiceProcess } from "../faults/service-process.ts";
import { type Cluster, startCluster } from "./ingest/cluster.ts";
import { listTree, readCpuMs } from "./process-tree.ts";
import { toSpread } from "./spread.ts";
import { alignColumns } from "./tables.ts";

const FIRST_ZONE = 1_001;
const DATABASE = "bench_accounts";
const LONGEST_START_MS = 60 * MINUTE_MS;
const SAMPLE_MS = 5_000;
/** The hours that have ended and are sealed before the measurement, so that a first copy is no part of it. */
const SEALED_SHARE = 0.95;

export interface AccountsBenchOptions {
  readonly accounts: number;
  /** Of each account. */
  readonly zones: number;
  /** Of each account. */
  readonly requestsPerSecond: number;
  /** Of all zones together. */
  readonly eventsPerSecond: number;
  readonly historyHours: number;
  readonly minutes: number;
  readonly onProgress: (what: string) => void;
}

export interface MeasuredAccounts {
  /** The lag of the median zone and of the slowest, in seconds, one of each per sample. */
  readonly medians: readonly number[];
  readonly slowest: readonly number[];
  /** Shares of a core. */
  readonly service: number;
  readonly postgres: number;
  readonly requestsPerSecond: number;
  readonly load: readonly number[];
}

/** Runs the service over an emulator with many accounts, and measures the age of the newest minute that was searched of each zone. */
export async function benchAccounts(options: AccountsBenchOptions): Promise<MeasuredAccounts> {
  const { onProgress, requestsPerSecond, eventsPerSecond, historyHours } = options;
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-accounts-"));
  const zoneIds = Array.from({ length: options.accounts * options.zones }, (_, i) => FIRST_ZONE + i);
  onProgress("starting Postgres and the emulator");
  const cluster = await startCluster();
  const emulator = await startEmulatorProcess(
    [
      `--zones=${zoneIds.join(",")}`,
      `--events-per-second=${eventsPerSecond}`,
      `--history-hours=${historyHours}`,
      "--late-share=0",
      "--no-state",
    ],
    () => onProgress("the emulator ended"),
  );
  const accounts = Object.fromEntries(
    Array.from({ length: options.accounts }, (_, i) => [
      `agency-${i + 1}`,
      {
        key_env: "AGENCY_KEY",
        address: emulator.url,
        zones: zoneIds.slice(i * options.zones, (i + 1) * options.zones),
        requests_per_second: requestsPerSecond,
      },
    ]),
  );
  const file = path.join(folder, "longwatch.yaml");
  writeFileSync(file, JSON.stringify({ accounts }));
  const url = await cluster.createMigrated(DATABASE);
  const service = startServiceProcess({
    DATABASE_URL: url,
    AGENCY_KEY: emulator.accessKey.reveal(),
    LONGWATCH_CONFIG: file,
    LONGWATCH_DATA_DIR: folder,
  });
  try {
    onProgress("copying the history");
    await untilSealed(cluster, SEALED_SHARE * zoneIds.length * (historyHours - 1)).catch(
      (thrown: unknown) => {
        throw new Error(`the history was not copied: ${service.printed().slice(-2_000)}`, { cause: thrown });
      },
    );
    onProgress(`measuring for ${options.minutes} minutes`);
    const serverPid = await cluster.readPid();
    const readCpu = () => ({
      service: readCpuMs(listTree(service.child.pid)),
      postgres: readCpuMs(listTree(serverPid)),
    });
    const countRequests = async () => {
      const answer = await fetch(`${emulator.url}/_emulator/requests`);
      const { counts } = (await answer.json()) as { counts: Record<string, number> };
      return Object.values(counts).reduce((sum, count) => sum + count, 0);
    };
    const [before, asked, startedAt] = [readCpu(), await countRequests(), Date.now()];
    const measured = { medians: [] as number[], slowest: [] as number[], load: [] as number[] };
    while (Date.now() - startedAt < options.minutes * MINUTE_MS) {
      await delay(SAMPLE_MS);
      const lags = await readLags(cluster);
      const spread = toSpread([
        ...lags,
        ...Array<number>(zoneIds.length - lags.length).fill(Number.POSITIVE_INFINITY),
      ]);
      measured.medians.push(spread?.median ?? 0);
      measured.slowest.push(spread?.max ?? 0);
      measured.load.push(loadavg()[0] ?? 0);
    }
    const [after, ms] = [readCpu(), Date.now() - startedAt];
    return {
      ...measured,
      service: (after.service - before.service) / ms,
      postgres: (after.postgres - before.postgres) / ms,
      requestsPerSecond: (((await countRequests()) - asked) * 1_000) / ms,
    };
  } finally {
    service.child.kill("SIGTERM");
    await service.exited;
    await emulator.stop();
    await cluster.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function untilSealed(cluster: Cluster, wanted: number): Promise<void> {
  for (const endsAt = Date.now() + LONGEST_START_MS; ; await delay(2_000)) {
    const [row] = await cluster.query<{ sealed: number }>(
      DATABASE,
      "select count(*)::int as sealed from coverage_windows where state = 'sealed'",
    );
    if (row !== undefined && row.sealed >= wanted) return;
    if (Date.now() >= endsAt) throw new Error(`${row?.sealed} of ${wanted} hours are sealed`);
  }
}

/** Returns the age of the newest minute that was searched of each zone, in seconds. */
async function readLags(cluster: Cluster): Promise<number[]> {
  const rows = await cluster.query<{ lag: number }>(
    DATABASE,
    "select extract(epoch from now() - max(searched_through))::float8 as lag from coverage_windows group by zone_id",
  );
  return rows.map(({ lag }) => lag);
}

export function reportAccounts(
  { medians, slowest, service, postgres, requestsPerSecond, load }: MeasuredAccounts,
  { accounts, zones }: Pick<AccountsBenchOptions, "accounts" | "zones">,
): string {
  const describe = (values: readonly number[], unit: string) => {
    const { median = 0, min = 0, max = 0 } = toSpread(values) ?? {};
    return `${median.toFixed(1)}${unit} (${min.toFixed(1)} to ${max.toFixed(1)})`;
  };
  const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
  return `${alignColumns([
    [`${accounts} accounts with ${zones} zones each`, "", "limit"],
    ["lag of the median zone", describe(medians, " s"), "20 s"],
    ["lag of the slowest zone", describe(slowest, " s"), "60 s"],
    ["CPU of the service", percent(service), "35 %"],
    ["CPU of Postgres", percent(postgres), ""],
    ["requests a second", requestsPerSecond.toFixed(1), ""],
    ["load", describe(load, ""), ""],
  ]).join("\n")}\n`;
}

/** Whether the limits are met. */
export function meetsLimits({ medians, slowest, service }: MeasuredAccounts): boolean {
  return (toSpread(medians)?.median ?? 0) <= 20 && (toSpread(slowest)?.max ?? 0) <= 60 && service <= 0.35;
}
