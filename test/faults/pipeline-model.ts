import fc from "fast-check";
import type { FaultInput } from "#emulator/faults.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { type CutWorld, openFaultyWorld, proxyPostgres } from "./faulty-world.ts";
import { readVerdicts } from "./invariants.ts";
import type { Replica } from "./replica.ts";

/** A possible next action: on one of two replicas, the networks, the platform, or the time. */
export type Action =
  | { readonly kind: "wait"; readonly minutes: number }
  | { readonly kind: "run"; readonly job: number; readonly replica: 0 | 1 }
  | { readonly kind: "run at once"; readonly jobs: readonly number[] }
  | { readonly kind: "cut connections" }
  | { readonly kind: "cut a commit"; readonly when: "before" | "after" }
  | { readonly kind: "stop in the middle"; readonly job: number; readonly replica: 0 | 1 }
  | { readonly kind: "lose the leases" }
  | { readonly kind: "platform fault"; readonly fault: FaultInput }
  | { readonly kind: "platform well" }
  | { readonly kind: "attack"; readonly perSecond: number };

const faults: readonly FaultInput[] = [
  { kind: "status", probability: 0.5 },
  { kind: "rate-limit", probability: 0.3, retryAfter: "none" },
  { kind: "cut-socket", at: "middle", probability: 0.5 },
  { kind: "truncated-body", probability: 0.5 },
  { kind: "duplicate-page", probability: 0.5 },
  { kind: "shortened-page", keep: 0.5, probability: 0.5 },
  { kind: "shortened-page", keep: 0.5, endsEarly: true, probability: 0.3 },
  { kind: "dropped-events", share: 0.3, passes: 1 },
  { kind: "token-loop", pages: 2, probability: 0.2 },
  { kind: "token-expiry", probability: 0.3 },
  { kind: "envelope", operation: "search-event-logs", probability: 0.5 },
  { kind: "unauthorized", probability: 0.3 },
];

const job = fc.nat({ max: 99 });
const replica = fc.constantFrom(0 as const, 1 as const);

/** Work is likelier than harm, so that there is state to be harmed. */
export const anyAction: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), minutes: fc.integer({ min: 1, max: 40 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), minutes: fc.integer({ min: 120, max: 900 }) }),
  },
  { weight: 16, arbitrary: fc.record({ kind: fc.constant("run" as const), job, replica }) },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("run at once" as const),
      jobs: fc.array(job, { minLength: 2, maxLength: 5 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("cut connections" as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant("cut a commit" as const),
      when: fc.constantFrom("before" as const, "after" as const),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("stop in the middle" as const), job, replica }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("lose the leases" as const) }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant("platform fault" as const), fault: fc.constantFrom(...faults) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("platform well" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant("attack" as const), perSecond: fc.integer({ min: 1, max: 2 }) }),
  },
);

export interface Model {
  readonly world: CutWorld;
  readonly replicas: readonly [Replica, Replica];
  /** Performs the action. A failure of it is allowed. */
  act(action: Action): Promise<void>;
  /** Returns every promise that is broken now. */
  inspect(isComplete?: boolean): Promise<string[]>;
  /** Ends the faults and advances the time until every job has run several times. */
  calmDown(): Promise<void>;
  /** Messages that were sent, as `alert transition`. */
  readonly sent: readonly string[];
}

/** Opens two replicas with every job, on one database and one platform whose clock only the actions move. */
export async function openModel(seed: number): Promise<Model> {
  const world = await proxyPostgres(
    await openFaultyWorld({
      seed: String(seed),
      historyHours: 3,
      eventsPerSecond: 0.01,
      lateShare: 0.1,
      pageSize: 80,
      order: seed % 2 === 0 ? "oldest" : "newest",
    }),
  );
  const sent: string[] = [];
  const onMessage = (message: { alertId: number; transition: number }) =>
    void sent.push(`${message.alertId} ${message.transition}`);
  const replicas = [
    world.openReplica({ name: "replica A", onMessage }),
    world.openReplica({ name: "replica B", onMessage }),
  ] as const;
  const verdicts = new Map<string, string>();
  const nameOf = (index: number) => {
    const { jobNames } = replicas[0];
    return jobNames[index % jobNames.length] ?? "";
  };
  const tryRun = (index: number, of: 0 | 1, signal?: AbortSignal) =>
    replicas[of].run(nameOf(index), signal).catch(() => undefined);

  async function act(action: Action): Promise<void> {
    const { emulator, toPostgres } = world;
    switch (action.kind) {
      case "wait":
        return emulator.advance(action.minutes * MINUTE_MS);
      case "run":
        return tryRun(action.job, action.replica);
      case "run at once":
        await Promise.all(action.jobs.map((index, at) => tryRun(index, at % 2 === 0 ? 0 : 1)));
        return;
      case "cut connections":
        return toPostgres.cut();
      case "cut a commit":
        toPostgres.cutCommit(action.when);
        return;
      case "stop in the middle": {
        const stop = new AbortController();
        world.toPostgres.cutCommit("before", () => {
          stop.abort(new Error("the replica was told to stop"));
          return false;
        });
        return tryRun(action.job, action.replica, stop.signal);
      }
      case "lose the leases":
        return world.expireLeases();
      case "platform fault":
        return emulator.addFault(action.fault);
      case "platform well":
        return emulator.clearFaults();
      case "attack":
        emulator.addAttack(`zone=101,rule=942100,start=-1m,duration=2m,rate=${action.perSecond}/s`);
        return;
    }
  }

  return {
    world,
    replicas,
    sent,
    act,
    async inspect(isComplete = false) {
      const breaches = await world.inspect(isComplete);
      const now = await readVerdicts(world.database);
      for (const [hour, verdict] of verdicts) {
        if (now.get(hour) !== verdict)
          breaches.push(`I4, I5: a verdict stays: ${hour} was ${verdict} and is ${now.get(hour)}`);
      }
      for (const [hour, verdict] of now) verdicts.set(hour, verdict);
      return breaches;
    },
    async calmDown() {
      world.emulator.clearFaults();
      world.toPostgres.cutCommit("before", () => false);
      for (let turn = 0; turn < 8; turn++) {
        world.emulator.advance(16 * MINUTE_MS);
        await world.expireLeases();
        await world.database.pool.query(
          "update notifications set next_attempt_at = now() - interval '1 second'",
        );
        for (const name of replicas[0].jobNames) {
          // A connection that was just cut may still be in a pool. A job that fails twice fails the test.
          await replicas[turn % 2 === 0 ? 0 : 1].run(name).catch(() => replicas[0].run(name));
        }
      }
    },
  };
}
