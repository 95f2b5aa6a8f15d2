import { expect, onTestFinished, test } from "vitest";
import { openChangingPlatform } from "../ingest/ingest-support.ts";
import { openFaultyWorld } from "./faulty-world.ts";
import { createForgetfulSearch } from "./forgetful-search.ts";
import { createMortalReplica } from "./mortal-replica.ts";

const ASKING = ["before ask", "after ask"] as const;
const WRITING = ["before write", "after write"] as const;
const COMMITTING = ["before commit", "after commit"] as const;
const SENDING = ["before send", "after send"] as const;

/** The points at which each job can be killed. */
const POINTS: readonly (readonly [job: string, points: readonly string[]])[] = [
  ["poll-events", [...ASKING, ...COMMITTING]],
  ["walk-days", [...ASKING, ...COMMITTING]],
  ["reconcile-counts", [...ASKING, ...COMMITTING]],
  ["repair-window", [...ASKING, ...COMMITTING]],
  ["seal-windows", COMMITTING],
  ["roll-up-trends", COMMITTING],
  ["detect-spikes", WRITING],
  ["fetch-advice", [...ASKING, ...WRITING]],
  ["raise-alerts", [...WRITING, ...COMMITTING]],
  ["deliver-alerts", [...SENDING, ...WRITING]],
];

test("F1, F2, F65: killed at every named point of every job, the next life goes on, and nothing is lost or doubled", async () => {
  const world = await openFaultyWorld({ historyHours: 2, eventsPerSecond: 0.02 });
  const { emulator, database } = world;
  // Events that an earlier life has seen are not hidden, because a search that shows less than before moves no cursor.
  let hiddenFrom = 0;
  const search = createForgetfulSearch({ isSteady: true, from: () => hiddenFrom });
  const forgetful = await openChangingPlatform(emulator, search.change);
  const sent: string[] = [];
  const onMessage = ({ alertId, transition }: { alertId: number; transition: number }) =>
    void sent.push(`${alertId} ${transition}`);
  const survivor = world.openReplica({ platformUrl: emulator.url, onMessage });
  const forgetting = world.openReplica({ platformUrl: forgetful, onMessage });
  const all = POINTS.flatMap(([job, places]) => places.map((point) => [job, point] as const));
  const survived: string[] = [];
  let lives = 0;
  /** New events and a new episode, taken as far as the job; for a repair, an hour that both routes have shown in part. */
  async function prepare(job: string): Promise<void> {
    const isRepair = job === "repair-window";
    hiddenFrom = emulator.now();
    emulator.advance((isRepair ? 80 : 20) * 60_000);
    emulator.addAttack(`zone=101,rule=${942_100 + lives++},start=-7m,duration=1m,rate=1/s`);
    if (isRepair) emulator.addFault({ kind: "dropped-events", share: 0.5, passes: 1_000 });
    const replica = isRepair ? forgetting : survivor;
    for (const earlier of replica.jobNames.slice(0, replica.jobNames.indexOf(job)))
      await replica.run(earlier).catch(() => undefined);
  }
  async function kill(job: string, point: string, platformUrl: string): Promise<boolean> {
    const victim = createMortalReplica(job, point, {
      databaseUrl: database.url,
      platformUrl,
      accessKey: emulator.accessKey,
      clock: () => emulator.now(),
      onMessage,
    });
    onTestFinished(() => victim.close());
    await victim.run(job).catch(() => undefined);
    await victim.close();
    emulator.clearFaults();
    expect(await world.inspect(false), `killed in ${job} ${point}`).toEqual([]);
    await world.expireLeases();
    await database.pool.query(
      "update notifications set next_attempt_at = now() - interval '1 second' where state in ('pending', 'sending')",
    );
    return victim.hasDied();
  }
  for (const [job, point] of all) {
    const platformUrl = job === "repair-window" ? forgetful : emulator.url;
    // A kill leaves most of the work, so the next victim of the job often needs no new work to die of.
    const isNext = survived.at(-1)?.startsWith(`${job} `) === true;
    let hasDied = isNext && (await kill(job, point, platformUrl));
    // On a busy machine an earlier job may run into its deadline and leave no work for this one.
    for (let attempt = 0; attempt < 4 && !hasDied; attempt += 1) {
      await prepare(job);
      hasDied = await kill(job, point, platformUrl);
    }
    if (hasDied) survived.push(`${job} ${point}`);
  }
  expect(survived).toEqual(all.map(([job, point]) => `${job} ${point}`));

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
});
