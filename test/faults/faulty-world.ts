import { onTestFinished } from "vitest";
import type { Emulator, EmulatorOptions } from "#emulator/emulator.ts";
import { HOUR_MS } from "#lib/units.ts";
import { KEPT_MS, startOfHour } from "#model/horizon.ts";
import { FIRST_WATCHED } from "#proof/rules/judge-hour.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { openEmulator } from "../emulator/support.ts";
import { findBreaches, findMissing, readShown } from "./invariants.ts";
import { createReplica, type Replica, type ReplicaOptions, ZONE } from "./replica.ts";
import { startTcpProxy, type TcpProxy } from "./tcp-proxy.ts";

/** A platform, the network to it, and a database. Platform and network can be made to fail. */
export interface FaultyWorld {
  readonly emulator: Emulator;
  /** Start of the first hour that the service has to prove, epoch ms. */
  readonly firstHour: number;
  /** The connections that the test itself uses. */
  readonly database: MigratedDatabase;
  readonly toPlatform: TcpProxy;
  openReplica(over?: Partial<ReplicaOptions>): Replica;
  /** Expires the leases of killed processes. */
  expireLeases(): Promise<void>;
  /** Returns every broken promise and, with `isComplete`, every missing event. */
  inspect(isComplete?: boolean): Promise<string[]>;
}

export interface FaultyWorldOptions extends EmulatorOptions {
  /**
   * True if the service has yet to search every hour of the horizon. By default the hours before the history are known to be
   * unwatched, except the last one, because a world of 72 hours costs a search of each.
   */
  readonly isFirstStart?: boolean;
}

export async function openFaultyWorld({
  isFirstStart = false,
  ...options
}: FaultyWorldOptions = {}): Promise<FaultyWorld> {
  const emulatorOptions = {
    zones: [ZONE],
    historyHours: 3,
    eventsPerSecond: 0.03,
    pageSize: 40,
    ...options,
  };
  const emulator = await openEmulator(emulatorOptions);
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const oldestHour = startOfHour(emulator.now()) - KEPT_MS;
  const firstHour = isFirstStart
    ? oldestHour
    : startOfHour(emulator.now()) - (emulatorOptions.historyHours + 1) * HOUR_MS;
  if (!isFirstStart)
    await database.pool.query(
      `insert into coverage_windows (zone_id, starts_at, searched_through, state, gap_reason)
       select $1, hour, hour + interval '1 hour', 'gap', $2
       from generate_series($3::timestamptz, $4, interval '1 hour') as hour`,
      [ZONE, FIRST_WATCHED, new Date(oldestHour), new Date(firstHour - HOUR_MS)],
    );
  const toPlatform = await startTcpProxy(emulator.port);
  onTestFinished(() => toPlatform.close());
  return {
    emulator,
    firstHour,
    database,
    toPlatform,
    openReplica(over = {}) {
      const replica = createReplica({
        databaseUrl: database.url,
        platformUrl: toPlatform.through(emulator.url),
        accessKey: emulator.accessKey,
        clock: () => emulator.now(),
        ...over,
      });
      onTestFinished(() => replica.close());
      return replica;
    },
    async expireLeases() {
      await database.pool.query(
        "update leases set expires_at = now() - interval '1 second' where expires_at is not null",
      );
    },
    async inspect(isComplete = true) {
      const read = () => readShown(emulator.url, ZONE);
      const breaches = await findBreaches(database, ZONE, read);
      const missing = isComplete ? await findMissing(database, ZONE, await read()) : [];
      return [...breaches, ...missing.slice(0, 5).map((event) => `I1: ${event} is missing`)];
    },
  };
}

/** A world whose replicas reach Postgres over a network that can be made to fail. */
export interface CutWorld extends FaultyWorld {
  readonly toPostgres: TcpProxy;
}

/** Puts a network between the replicas that are opened from now on and Postgres. Every statement then costs twice as much. */
export async function proxyPostgres(world: FaultyWorld): Promise<CutWorld> {
  const { url } = world.database;
  const toPostgres = await startTcpProxy(Number(new URL(url).port));
  onTestFinished(() => toPostgres.close());
  return {
    ...world,
    toPostgres,
    openReplica: (over = {}) => world.openReplica({ databaseUrl: toPostgres.through(url), ...over }),
  };
}

/** Runs the jobs one after another until all of them end well, as the queue and the sweeper would. */
export async function runUntilDone(
  world: FaultyWorld,
  replica: Replica,
  jobs: readonly string[],
  rounds = 30,
) {
  for (let round = 1; ; round++) {
    const failures: unknown[] = [];
    for (const job of jobs) await replica.run(job).catch((thrown: unknown) => failures.push(thrown));
    if (failures.length === 0) return round;
    if (round === rounds) throw new Error(`still failing after ${rounds} rounds`, { cause: failures[0] });
    await world.expireLeases();
  }
}
