import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { readDatabaseUrl } from "#config/read-database-url.ts";
import { startTcpProxy } from "../faults/tcp-proxy.ts";
import type { WebhookReceiver } from "../faults/webhook-receiver.ts";
import { findOlderServer } from "../support/older-postgres.ts";
import { findRedisServer } from "../support/redis.ts";
import { startCluster, startSentinels } from "../support/redis-group.ts";
import { type Loss, type StandbyPair, startStandbyPair } from "../support/standby-pair.ts";
import type { FinalCheck } from "./final-checks.ts";
import type { SoakFault } from "./soak-faults.ts";
import type { SoakPostgres } from "./soak-postgres.ts";
import type { SoakRedis } from "./soak-world.ts";

const DATABASE = "postgres";

/** How the stores of a soak survive the loss of a machine. */
export const REDIS_FORMS = ["sentinel", "cluster"] as const;
export type RedisForm = (typeof REDIS_FORMS)[number];

/** How long a lost server keeps its connections open without an answer. */
const SILENT_MS = [30_000, 60_000] as const;

/** What each replica does, in turn. */
export const ROLES = ["ingest", "derive", "alerts,http"];

export interface Machines {
  readonly postgres: SoakPostgres;
  readonly redis: SoakRedis;
  readonly faults: readonly SoakFault[];
  /** The folder of the destination to which every event is forwarded. */
  readonly folder: string;
}

/** Starts a primary of Postgres with its standby, and a Redis of several servers. */
export async function startMachines(folder: string, form: RedisForm): Promise<Machines> {
  const [postgresServer, redisServer] = [findOlderServer(), findRedisServer()];
  if (typeof postgresServer === "string") throw new Error(postgresServer);
  if (redisServer === null) throw new Error("valkey-server or redis-server is not on PATH");
  const pair = await startStandbyPair(postgresServer);
  const group = await (form === "cluster" ? startCluster : startSentinels)(redisServer);
  const read = readDatabaseUrl(pair.url(DATABASE));
  const unused = await startTcpProxy(1);
  const forwarded = path.join(folder, "forwarded");
  mkdirSync(forwarded);
  const inTurn = createTurns();
  const loseRedis = (loss: Loss, downMs: number) =>
    inTurn("redis", async () => {
      await group.failOver(loss);
      await delay(downMs);
      await group.revive();
    });
  return {
    folder: forwarded,
    postgres: {
      url: "url" in read ? read.url : "",
      proxy: unused,
      query: (text, values) => pair.query(DATABASE, text, values),
      restart: () => Promise.reject(new Error("a standby takes over instead")),
      async stop() {
        await unused.close();
        await pair.stop();
      },
    },
    redis: {
      proxy: unused,
      proxiedUrl: group.url,
      flush: () => inTurn("redis", async () => void (await group.ask("FLUSHALL"))),
      restart: (downMs) => loseRedis("killed", downMs),
      stop: () => group.stop(),
    },
    faults: [
      {
        name: "Postgres killed, synchronous standby promoted",
        inflict: (_world, dice) =>
          inTurn("postgres", async () => {
            await pair.follow("synchronously");
            await delay(dice.roll(2_000, 6_000));
            await failOver(pair);
          }),
      },
      {
        name: "Postgres killed, standby promoted without the newest commits",
        inflict: (_world, dice) =>
          inTurn("postgres", async () => {
            await pair.follow("asynchronously");
            await pair.lag();
            await delay(dice.roll(3_000, 15_000));
            await failOver(pair);
          }),
      },
      {
        name: "Postgres silent with open connections, standby promoted",
        inflict: (_world, dice) =>
          inTurn("postgres", async () => {
            await pair.follow("asynchronously");
            await delay(dice.roll(2_000, 6_000));
            await failOver(pair, "silent", dice.roll(...SILENT_MS));
          }),
      },
      {
        name: "Redis primary killed, another one takes over",
        inflict: (_world, dice) => loseRedis("killed", dice.roll(0, 5_000)),
      },
      {
        name: "Redis primary silent with open connections, another one takes over",
        inflict: (_world, dice) => loseRedis("silent", dice.roll(...SILENT_MS)),
      },
    ],
  };
}

async function failOver(pair: StandbyPair, loss?: Loss, silentMs = 0): Promise<void> {
  await pair.failOver(loss);
  await delay(silentMs);
  await pair.follow("asynchronously");
}

/** Two faults at once must not harm the same store. */
function createTurns() {
  const last = new Map<string, Promise<void>>();
  return (name: string, run: () => Promise<void>) => {
    const turn = (last.get(name) ?? Promise.resolve()).then(run);
    last.set(
      name,
      turn.catch(() => undefined),
    );
    return turn;
  };
}

/** Checks that no transition was sent more than twice to a receiver that accepted it, and that one id is one message. */
export function checkRepeats({ received }: WebhookReceiver): FinalCheck {
  const sent = Map.groupBy(received, ({ id }) => id);
  const often = [...sent].filter(([, messages]) => messages.length > 2);
  const other = [...sent].filter(([, messages]) => new Set(messages.map(({ reason }) => reason)).size > 1);
  const found = [...often, ...other].map(([id, messages]) => `${id} ${messages.length} times`);
  const repeats = received.length - sent.size;
  const detail =
    found.length === 0 ? `${received.length} messages, ${repeats} twice` : found.slice(0, 3).join(", ");
  return { name: "no message sent more than twice", detail, isMet: found.length === 0 };
}

/** Checks that a destination has every stored event of the hours that are said to have arrived. */
export async function checkReceipts({ postgres, folder }: Machines): Promise<FinalCheck> {
  const kept = new Set<string>();
  for (const name of readdirSync(folder))
    for (const line of readFileSync(path.join(folder, name), "utf8").split("\n"))
      if (line !== "") kept.add((JSON.parse(line) as { logId: string }).logId);
  const hours = await postgres.query<{ arrived: number }>(
    "select count(*) filter (where arrival = 'arrived')::int as arrived from forward_hours",
  );
  const events = await postgres.query<{ id: string }>(
    `select e.log_id as id from waf_events e join forward_hours h on h.zone_id = e.zone_id
       and h.starts_at = date_trunc('hour', e.occurred_at) where h.arrival = 'arrived'`,
  );
  const lacking = events.filter(({ id }) => !kept.has(id));
  const arrived = hours[0]?.arrived ?? 0;
  const detail =
    lacking.length === 0
      ? `${arrived} hours arrived, ${events.length} events`
      : `${lacking.length} of ${events.length} lacking: ${lacking[0]?.id}`;
  return { name: "receipts of forwarding true", detail, isMet: lacking.length === 0 && arrived > 0 };
}
