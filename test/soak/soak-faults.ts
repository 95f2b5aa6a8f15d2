import { setTimeout as delay } from "node:timers/promises";
import type { FaultInput } from "#emulator/faults.ts";
import type { Dice } from "./dice.ts";
import { SOAK_LIES } from "./soak-lies.ts";
import type { SoakWorld } from "./soak-world.ts";

/** One kind of fault. Resolves when it is over and everything is available again. */
export interface SoakFault {
  readonly name: string;
  inflict(world: SoakWorld, dice: Dice): Promise<void>;
}

const PLATFORM: readonly (readonly [name: string, fault: FaultInput])[] = [
  ["answers 429", { kind: "rate-limit", probability: 0.6, seconds: 1 }],
  ["answers 503", { kind: "status", status: 503, probability: 0.7 }],
  ["answers HTML with 502", { kind: "status", status: 502, body: "html", probability: 0.7 }],
  ["refuses the key", { kind: "unauthorized" }],
  ["says the plan lacks it", { kind: "envelope", probability: 0.7 }],
  ["takes three seconds", { kind: "latency", ms: 3_000 }],
  ["truncates bodies", { kind: "truncated-body", probability: 0.6 }],
  ["drips", { kind: "slow-drip", probability: 0.5 }],
  ["cuts sockets", { kind: "cut-socket", at: "middle", probability: 0.6 }],
  ["repeats pages (F45)", { kind: "duplicate-page", probability: 0.5 }],
  ["shortens pages (F44)", { kind: "shortened-page", keep: 0.5, probability: 0.6 }],
  ["ends passes early (F44)", { kind: "shortened-page", keep: 0.6, endsEarly: true, probability: 0.4 }],
  ["drops events (F48)", { kind: "dropped-events", share: 0.3, passes: 1_000 }],
  ["loops tokens (F46)", { kind: "token-loop", pages: 2, probability: 0.4 }],
  ["expires tokens (F47)", { kind: "token-expiry", probability: 0.5 }],
];

function platformFault([name, fault]: (typeof PLATFORM)[number]): SoakFault {
  return {
    name: `platform ${name}`,
    async inflict({ emulator }, dice) {
      emulator.addFault(fault);
      await delay(dice.roll(2_000, 8_000));
      emulator.clearFaults();
    },
  };
}

const LONGEST_LIE_MS = 90_000;

function platformLie([name, lie]: (typeof SOAK_LIES)[number]): SoakFault {
  return {
    name: `lie: ${name}`,
    async inflict({ liar }, dice) {
      const told = liar.tell(lie);
      const untilMs = Date.now() + LONGEST_LIE_MS;
      await delay(dice.roll(5_000, 15_000));
      // Lists are read every minute or two, and counts every five. A lie that changed no answer would prove nothing.
      while (told.tally.answers === 0 && Date.now() < untilMs) await delay(1_000);
      told.end();
    },
  };
}

const seconds = (dice: Dice, from: number, to: number) => dice.roll(from * 1_000, to * 1_000);

const OTHERS: readonly SoakFault[] = [
  {
    name: "replica killed with -9",
    async inflict({ replicas }, dice) {
      const replica = dice.pick(replicas);
      replica.kill("SIGKILL");
      await replica.startAgain(seconds(dice, 0, 4));
    },
  },
  {
    name: "every replica killed with -9 at once",
    async inflict({ replicas }, dice) {
      for (const replica of replicas) replica.kill("SIGKILL");
      await Promise.all(replicas.map((replica) => replica.startAgain(seconds(dice, 0, 3))));
    },
  },
  {
    name: "replica deployed anew (SIGTERM)",
    async inflict({ replicas }, dice) {
      const replica = dice.pick(replicas);
      replica.kill("SIGTERM");
      await replica.startAgain(0);
    },
  },
  {
    name: "replica frozen, then awake again",
    async inflict({ replicas }, dice) {
      const replica = dice.pick(replicas);
      replica.kill("SIGSTOP");
      await delay(seconds(dice, 5, 15));
      replica.kill("SIGCONT");
    },
  },
  {
    name: "Redis FLUSHALL",
    inflict: async ({ redis }) => redis?.flush(),
  },
  {
    name: "Redis killed and restarted",
    inflict: async ({ redis }, dice) => redis?.restart(seconds(dice, 0, 5)),
  },
  {
    name: "Redis silent",
    async inflict({ redis }, dice) {
      redis?.proxy.behave({ isStalled: true });
      await delay(seconds(dice, 3, 8));
      redis?.proxy.behave({ isStalled: false });
    },
  },
  {
    name: "Postgres restarted",
    inflict: ({ postgres }, dice) => postgres.restart("fast", seconds(dice, 0, 4)),
  },
  {
    name: "Postgres crashed and recovered",
    inflict: ({ postgres }, dice) => postgres.restart("immediate", seconds(dice, 0, 4)),
  },
  {
    name: "Postgres connections cut",
    inflict: async ({ postgres }) => postgres.proxy.cut(),
  },
  {
    name: "connection cut before a COMMIT (F31)",
    inflict: (world) => cutCommit(world, "before"),
  },
  {
    name: "connection cut after a COMMIT (F31)",
    inflict: (world) => cutCommit(world, "after"),
  },
  {
    name: "Postgres silent",
    async inflict({ postgres }, dice) {
      postgres.proxy.behave({ isStalled: true });
      await delay(seconds(dice, 3, 8));
      postgres.proxy.behave({ isStalled: false });
    },
  },
  {
    name: "Postgres far away and slow",
    async inflict({ postgres }, dice) {
      postgres.proxy.behave({ delayMs: 30, bytesPerSecond: 300_000 });
      await delay(seconds(dice, 3, 8));
      postgres.proxy.behave({ delayMs: 0, bytesPerSecond: Infinity });
    },
  },
  {
    name: "network to the platform half open",
    async inflict({ toPlatform }, dice) {
      toPlatform.behave({ isDeaf: true });
      await delay(seconds(dice, 3, 8));
      toPlatform.behave({ isDeaf: false });
      toPlatform.cut();
    },
  },
  {
    name: "channel answers 503",
    async inflict({ receiver }, dice) {
      receiver.answer(503);
      await delay(seconds(dice, 4, 10));
      receiver.answer(200);
    },
  },
];

async function cutCommit({ postgres }: SoakWorld, when: "before" | "after"): Promise<void> {
  const cut = postgres.proxy.cutCommit(when);
  for (let waited = 0; waited < 100 && !cut.wasCut(); waited++) await delay(100);
}

/** The faults of a store of one server, of which a soak with several machines has others. */
const OF_ONE_SERVER = /^(Postgres|connection cut|Redis (killed|silent))/;

/** Returns every kind of fault, those of Redis only if there is one. */
export function listFaults({ redis, machines }: Pick<SoakWorld, "redis" | "machines">): readonly SoakFault[] {
  if (machines !== null)
    return [...OTHERS.filter(({ name }) => !OF_ONE_SERVER.test(name)), ...machines.faults];
  return [...PLATFORM.map(platformFault), ...SOAK_LIES.map(platformLie), ...OTHERS].filter(
    ({ name }) => redis !== null || !name.startsWith("Redis"),
  );
}
