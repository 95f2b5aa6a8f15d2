import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { openChangingPlatform } from "../ingest/ingest-support.ts";
import { sample } from "../support/sample.ts";
import { type FaultyWorld, openFaultyWorld } from "./faulty-world.ts";
import { createForgetfulSearch } from "./forgetful-search.ts";

const PROGRAM = fileURLToPath(new URL("./crash-child.ts", import.meta.url));

const ASKING = ["before ask", "after ask"] as const;
const WRITING = ["before write", "after write"] as const;
const COMMITTING = ["before commit", "after commit"] as const;
const SENDING = ["before send", "after send"] as const;

type Points = readonly (readonly [job: string, points: readonly string[]])[];

/** The points at which each job can be killed. */
const FIRST_HALF: Points = [
  ["poll-events", [...ASKING, ...COMMITTING]],
  ["walk-days", [...ASKING, ...COMMITTING]],
  ["reconcile-counts", [...ASKING, ...COMMITTING]],
  ["repair-window", [...ASKING, ...COMMITTING]],
];
const SECOND_HALF: Points = [
  ["seal-windows", COMMITTING],
  ["roll-up-trends", COMMITTING],
  ["detect-spikes", WRITING],
  ["fetch-advice", [...ASKING, ...WRITING]],
  ["raise-alerts", [...WRITING, ...COMMITTING]],
  ["deliver-alerts", [...SENDING, ...WRITING]],
];

interface Life {
  readonly wasKilled: boolean;
  readonly sent: readonly string[];
}

/** Runs every job until one is killed at its point. The jobs before it run in this process, which has loaded them already. */
async function live(world: FaultyWorld, url: string, [job, point]: readonly [string, string]): Promise<Life> {
  const { emulator, database } = world;
  const replica = world.openReplica({ platformUrl: url });
  for (const earlier of replica.jobNames.slice(0, replica.jobNames.indexOf(job)))
    await replica.run(earlier).catch(() => undefined);
  await replica.close();
  const child: ChildProcess = fork(PROGRAM, [
    database.url,
    url,
    emulator.accessKey,
    String(emulator.now()),
    job,
    point,
  ]);
  onTestFinished(() => void child.kill("SIGKILL"));
  const sent: string[] = [];
  child.on("message", (told: { sent: string }) => void sent.push(told.sent));
  const [, signal] = (await once(child, "close")) as [number | null, string | null];
  return { wasKilled: signal === "SIGKILL", sent };
}

async function surviveKills(points: Points): Promise<void> {
  const world = await openFaultyWorld({ historyHours: 2, eventsPerSecond: 0.02 });
  const { emulator, database } = world;
  // Events that an earlier process has seen are not hidden, because a search that shows less than before moves no
  // cursor.
  let hiddenFrom = 0;
  const search = createForgetfulSearch({ isSteady: true, from: () => hiddenFrom });
  const forgetful = await openChangingPlatform(emulator, search.change);
  // Before an ask, a write or a send, nothing has happened since the point before it. What a transaction did before its commit
  // is gone, so that a kill after an ask or a write leaves the same; one job is killed there all the same.
  const isRepeated = (job: string, places: readonly string[], point: string) =>
    point.startsWith("before") &&
    (point !== "before commit" || (places !== COMMITTING && job !== "poll-events"));
  const all = points.flatMap(([job, places]) =>
    sample(places, (point) => isRepeated(job, places, point)).map((point) => [job, point] as const),
  );
  const sent: string[] = [];
  const survived: string[] = [];
  let lives = 0;
  for (const [job, point] of all) {
    const isRepair = job === "repair-window";
    // New events and a new episode; for a repair, an hour that both routes have shown in part.
    hiddenFrom = emulator.now();
    emulator.advance((isRepair ? 80 : 20) * 60_000);
    emulator.addAttack(`zone=101,rule=${942_100 + lives++},start=-7m,duration=4m,rate=1/s`);
    if (isRepair) emulator.addFault({ kind: "dropped-events", share: 0.5, passes: 1_000 });
    const life = await live(world, isRepair ? forgetful : emulator.url, [job, point]);
    emulator.clearFaults();
    sent.push(...life.sent);
    if (life.wasKilled) survived.push(`${job} ${point}`);
    expect(await world.inspect(false), `killed in ${job} ${point}`).toEqual([]);
    await world.expireLeases();
    await database.pool.query(
      "update notifications set next_attempt_at = now() - interval '1 second' where state in ('pending', 'sending')",
    );
  }
  expect(survived).toEqual(all.map(([job, point]) => `${job} ${point}`));

  const survivor = world.openReplica({
    platformUrl: emulator.url,
    onMessage: ({ alertId, transition }) => void sent.push(`${alertId} ${transition}`),
  });
  for (let round = 0; round < 4; round++) {
    emulator.advance(20 * 60_000);
    for (const job of survivor.jobNames) {
      const run = survivor.run(job);
      await (round === 3 ? run : run.catch(() => undefined));
    }
  }
  expect(await world.inspect()).toEqual([]);
  const { rows } = await database.pool.query<{ key: string; state: string }>(
    "select alert_id || ' ' || transition as key, state from notifications",
  );
  expect(rows.filter(({ state }) => state === "pending" || state === "sending")).toEqual([]);
  expect(rows.filter(({ key, state }) => state === "delivered" && !sent.includes(key))).toEqual([]);
  // A process that was killed between a send and its record costs one more message, with the same dedupe key.
  expect(sent.length - new Set(sent).size).toBeLessThan(4);
}

test("F1, F2, F65: killed at every named point of every job, the next life goes on, and nothing is lost or doubled", async () => {
  await Promise.all([surviveKills(FIRST_HALF), surviveKills(SECOND_HALF)]);
});
