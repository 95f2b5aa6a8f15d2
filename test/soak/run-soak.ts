import { setTimeout as delay } from "node:timers/promises";
import { readSqlState } from "#lib/errors.ts";
import { KEPT_MS } from "#model/horizon.ts";
import { ROUTES } from "../support/liar/lie.ts";
import { createDice, type Dice } from "./dice.ts";
import { checkEnds, type FinalCheck, readShownEvents, runFinalChecks } from "./final-checks.ts";
import { listFaults } from "./soak-faults.ts";
import { reckonLies, type ToldLie } from "./soak-lies.ts";
import { checkReceipts, checkRepeats, type RedisForm } from "./soak-machines.ts";
import { openSoakWorld, type SoakWorld, ZONES } from "./soak-world.ts";

export interface SoakOptions {
  /** Minutes with faults. The calm time comes in addition. */
  readonly minutes: number;
  /** How long everything may take to become complete after the end of the faults. */
  readonly calmMinutes: number;
  readonly seed: number;
  readonly replicas: number;
  readonly historyHours: number;
  readonly eventsPerSecond: number;
  readonly machines: RedisForm | null;
  readonly onProgress: (line: string) => void;
  /** Ends the soak with everything that it started. */
  readonly signal: AbortSignal;
}

interface FaultTally {
  readonly name: string;
  readonly injected: number;
  /** Number of faults after which ingest continued. */
  readonly survived: number;
  /** Longest time from the end of a fault until ingest continued. */
  readonly slowestMs: number;
}

export interface SoakResult {
  readonly faults: readonly FaultTally[];
  readonly lies: readonly ToldLie[];
  readonly checks: readonly FinalCheck[];
  /** Time from the last fault until every check passed. */
  readonly calmMs: number;
  readonly requests: Readonly<Record<string, number>>;
  /** The end of the replicas' logs, for failed checks. */
  readonly logs: string;
}

const PASS_STANDS_MS = 150_000;

interface Inflicted {
  readonly name: string;
  endedAt: number | null;
  recoveredAt: number | null;
}

/**
 * Runs faults at random for some minutes, then a calm time, then the final checks. The same seed gives the same
 * faults in the same order.
 */
export async function runSoak(options: SoakOptions): Promise<SoakResult> {
  const { onProgress } = options;
  onProgress(`soak of ${options.minutes} min, seed ${options.seed}, ${options.replicas} replicas`);
  const world = await openSoakWorld(options);
  const dice = createDice(options.seed);
  const inflicted: Inflicted[] = [];
  const watch = watchProgress(world, inflicted);
  const interrupted = new Promise<never>((_, reject) => {
    options.signal.addEventListener("abort", () => reject(options.signal.reason as Error));
  });
  const run = async () => {
    await inflictFaults(world, dice, inflicted, options);
    onProgress("faults over, waiting for everything to be complete");
    return waitForCalm(world, options);
  };
  try {
    const { checks, calmMs } = await Promise.race([run(), interrupted]);
    return {
      faults: tally(inflicted),
      lies: reckonLies(world.liar.tallies()),
      checks: [...checks, checkEnds(world)],
      calmMs,
      requests: sumRequests(world),
      logs: world.readLogs(),
    };
  } finally {
    watch.stop();
    await world.close();
  }
}

async function inflictFaults(
  world: SoakWorld,
  dice: Dice,
  inflicted: Inflicted[],
  { minutes, onProgress }: SoakOptions,
): Promise<void> {
  const startedAt = Date.now();
  const endAt = startedAt + minutes * 60_000;
  const kinds = listFaults(world);
  // Each kind occurs once, in random order, before any occurs again. Two may overlap.
  let bag = [...kinds];
  const lanes = Array.from({ length: 2 }, async (_, lane) => {
    await delay(lane * 5_000);
    while (Date.now() < endAt) {
      if (bag.length === 0) bag = [...kinds];
      const kind = dice.pick(bag);
      bag = bag.filter((other) => other !== kind);
      const one: Inflicted = { name: kind.name, endedAt: null, recoveredAt: null };
      inflicted.push(one);
      onProgress(`${clock(Date.now() - startedAt)}  ${kind.name}`);
      await kind.inflict(world, dice);
      one.endedAt = Date.now();
      if (dice.roll(0, 3) === 0) attack(world, dice, onProgress);
      await delay(dice.roll(1_000, 6_000));
    }
  });
  const settled = await Promise.allSettled(lanes);
  for (const lane of settled) if (lane.status === "rejected") throw lane.reason;
}

function attack({ emulator }: SoakWorld, dice: Dice, onProgress: (line: string) => void): void {
  const script = `zone=${dice.pick(ZONES)},rule=${942_100 + 10 * dice.roll(0, 9)},start=+1s,duration=40s,rate=5/s`;
  emulator.addAttack(script);
  onProgress(`       attack ${script}`);
}

/** Watches ingest, which has continued once the search of every zone has passed a fault's end. */
function watchProgress({ postgres }: SoakWorld, inflicted: readonly Inflicted[]) {
  const stopping = new AbortController();
  const look = async () => {
    while (!stopping.signal.aborted) {
      const [row] = await postgres
        .query<{ through: number | null }>(
          `select (extract(epoch from min(through)) * 1000)::float8 as through from (
             select max(searched_through) as through from coverage_windows group by zone_id) zones`,
        )
        .catch(() => []);
      const through = row?.through ?? 0;
      for (const one of inflicted)
        if (one.endedAt !== null && one.recoveredAt === null && through > one.endedAt)
          one.recoveredAt = Date.now();
      await delay(500);
    }
  };
  void look();
  return { stop: () => stopping.abort() };
}

async function waitForCalm(
  world: SoakWorld,
  { calmMinutes, onProgress }: SoakOptions,
): Promise<{ checks: FinalCheck[]; calmMs: number }> {
  const startedAt = Date.now();
  world.emulator.clearFaults();
  world.liar.stop();
  world.receiver.answer(200);
  const shown = await readShownEvents(world);
  // What a standby lacked when it was promoted cannot be copied again once the platform has forgotten it.
  const fromMs = world.machines === null ? 0 : Date.now() - KEPT_MS;
  const expected = new Map(
    [...shown].map(([zone, events]) => [zone, events.filter(({ timestamp }) => timestamp >= fromMs)]),
  );
  for (let isFirst = true; ; isFirst = false) {
    await pullTimesForward(world, isFirst ? 0 : PASS_STANDS_MS, startedAt);
    await delay(15_000);
    const checks = await runFinalChecks(world, expected);
    if (world.machines !== null)
      checks.push(checkRepeats(world.receiver), await checkReceipts(world.machines));
    const calmMs = Date.now() - startedAt;
    const unmet = checks.filter(({ isMet }) => !isMet);
    if (unmet.length === 0 || calmMs > calmMinutes * 60_000) return { checks, calmMs };
    onProgress(
      `calm ${clock(calmMs)}  not yet: ${unmet.map(({ name, detail }) => `${name} (${detail})`).join(", ")}`.slice(
        0,
        300,
      ),
    );
  }
}

/**
 * Changes the database like an hour of waiting: every retry is due now, list passes are older than they are, and
 * looks that began after the last fault have agreed for an hour. An older pass proves less, never more. A pass
 * younger than `passStandsMs` is left alone, because the other proofs need it.
 */
async function pullTimesForward(
  { postgres }: SoakWorld,
  passStandsMs: number,
  calmSince: number,
): Promise<void> {
  const earlier = (column: string) => `${column} = ${column} - interval '15 minutes'`;
  const passes = ["started_at", "full_pass_started_at", "quiet_pass_started_at"].map(earlier).join(", ");
  const updates = [
    "update leases set due_at = now() where name like 'tick.%'",
    "update differing_cells set next_repair_at = now() where resolved_at is null and next_repair_at > now()",
    "update notifications set next_attempt_at = now() where state = 'pending' and next_attempt_at > now()",
    `update ingest_cursors set ${passes}
      where pass_result is not null and started_at < now() - interval '${passStandsMs} milliseconds'`,
    `update coverage_windows set looks = (
      select jsonb_object_agg(route, case when (look->>'since')::float8 < ${calmSince} then look
        else jsonb_set(look, '{since}', to_jsonb((look->>'since')::float8 - 3600000)) end)
      from jsonb_each(looks) as looked (route, look))
    where looks <> '{}' and state = 'open'`,
  ];
  // Each in a transaction of its own. The service may hold the rows in another order: then the next round changes them.
  for (const update of updates)
    await postgres.query(update).catch((thrown: unknown) => {
      if (readSqlState(thrown) !== "40P01") throw thrown;
    });
}

/** Returns the service's own requests, because the liar sends more requests to the emulator. */
function sumRequests({ liar }: SoakWorld): Record<string, number> {
  const zones = [...liar.requests().values()];
  return Object.fromEntries(
    ROUTES.map((route) => [route, zones.reduce((total, requests) => total + requests[route], 0)]),
  );
}

function tally(inflicted: readonly Inflicted[]): FaultTally[] {
  const names = [...new Set(inflicted.map(({ name }) => name))].sort();
  return names.map((name) => {
    const all = inflicted.filter((one) => one.name === name);
    const recoveries = all.flatMap(({ endedAt, recoveredAt }) =>
      endedAt === null || recoveredAt === null ? [] : [recoveredAt - endedAt],
    );
    return { name, injected: all.length, survived: recoveries.length, slowestMs: Math.max(0, ...recoveries) };
  });
}

function clock(ms: number): string {
  const whole = Math.floor(ms / 1_000);
  return `${String(Math.floor(whole / 60)).padStart(2, "0")}:${String(whole % 60).padStart(2, "0")}`;
}
