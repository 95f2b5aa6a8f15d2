import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { findFreePort } from "./free-port.ts";
import type { Loss } from "./standby-pair.ts";

/** Servers of Redis of which one takes over when another is killed. They keep nothing on the disk. */
export interface RedisGroup {
  /** As in `REDIS_URL`. */
  readonly url: string;
  /** Runs a command on the server that has the queues' keys, as soon as that takes writes. */
  ask(...words: [string, ...string[]]): Promise<unknown>;
  /** Loses the server that has the queues' keys, and waits until another one takes writes. */
  failOver(loss?: Loss): Promise<void>;
  /** Starts the lost server again, empty. Resolves when it is a replica that could take over. */
  revive(): Promise<void>;
  stop(): Promise<void>;
}

interface Node {
  readonly port: number;
  start(): Promise<void>;
  /** Stops it. Its connections stay open. */
  silence(): void;
  kill(): Promise<void>;
  ask(...words: [string, ...string[]]): Promise<unknown>;
}

/** A key in the queues' slot. */
const KEY = "{longwatch}:group";

/** A server that is stopped answers nothing. */
const ANSWER_MS = 3_000;

async function makeNode(server: string, folder: string, args: readonly string[]): Promise<Node> {
  const port = await findFreePort();
  const dir = path.join(folder, String(port));
  mkdirSync(dir);
  let child: ChildProcess | null = null;
  const ask: Node["ask"] = async (command, ...rest) => {
    const limits = { maxRetriesPerRequest: 0, commandTimeout: ANSWER_MS };
    const redis = new Redis(port, "127.0.0.1", { retryStrategy: () => null, ...limits });
    redis.on("error", () => undefined);
    try {
      return await redis.call(command, ...rest);
    } finally {
      redis.disconnect();
    }
  };
  return {
    port,
    ask,
    async start() {
      const own = ["--port", String(port), "--bind", "127.0.0.1", "--dir", dir];
      child = spawn(server, [...args, ...own], { stdio: "ignore" });
      await until(() => ask("PING"));
    },
    silence: () => void child?.kill("SIGSTOP"),
    async kill() {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** An election takes a second, and many times that on a busy machine. */
const MOST_MS = 180_000;

/** Waits until the answer includes the text. Returns the answer. */
async function until(ask: () => Promise<unknown>, text = ""): Promise<unknown> {
  const endAt = Date.now() + MOST_MS;
  for (;;) {
    const answer = await ask().catch(() => null);
    if (answer !== null && JSON.stringify(answer).includes(text)) return answer;
    if (Date.now() > endAt)
      throw new Error(`no answer with "${text}" within ${MOST_MS} ms: ${JSON.stringify(answer)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const MEMORY = ["--save", "", "--maxmemory-policy", "noeviction"];

/** Returns the group of which `pair` has the queues' keys. On a busy machine the two change places by themselves, too. */
function createGroup(
  url: string,
  { pair, others, folder }: { pair: readonly Node[]; others: readonly Node[]; folder: string },
): RedisGroup {
  let lost: Node | undefined;
  const find = async (role: string) => {
    const said = await Promise.all(pair.map((node) => node.ask("INFO", "replication").catch(() => null)));
    return pair.filter((_, index) => String(said[index]).includes(role));
  };
  /** A former primary that has just started says that it is one, until it is told to follow. */
  const askPrimary: Node["ask"] = async (...words) => {
    for (const node of await find("role:master"))
      if ((await node.ask("SET", KEY, "1").catch(() => null)) !== null) return node.ask(...words);
    throw new Error("no server takes writes");
  };
  return {
    url,
    ask: (...words) => until(() => askPrimary(...words)),
    async failOver(loss = "killed") {
      await until(() => askPrimary("PING"));
      [lost] = await find("role:master");
      if (loss === "silent") lost?.silence();
      else await lost?.kill();
      await until(() => askPrimary("PING"));
    },
    async revive() {
      await lost?.kill();
      await lost?.start();
      await until(async () => ((await find("master_link_status:up")).length === 1 ? "up" : null));
    },
    async stop() {
      await Promise.all([...pair, ...others].map((node) => node.kill()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts two servers and three Sentinels, which promote the other server after a second. */
export async function startSentinels(server: string): Promise<RedisGroup> {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-sentinels-"));
  const primary = await makeNode(server, folder, MEMORY);
  const follow = ["--replicaof", "127.0.0.1", String(primary.port)];
  const other = await makeNode(server, folder, [...MEMORY, ...follow]);
  await Promise.all([primary.start(), other.start()]);
  const sentinels = await Promise.all(
    [1, 2, 3].map(async (index) => {
      const file = path.join(folder, `sentinel-${index}.conf`);
      const settings = [
        `sentinel monitor queues 127.0.0.1 ${primary.port} 2`,
        "sentinel down-after-milliseconds queues 1000",
        "sentinel failover-timeout queues 3000",
      ];
      writeFileSync(file, settings.join("\n"));
      const sentinel = await makeNode(server, folder, [file, "--sentinel"]);
      await sentinel.start();
      return sentinel;
    }),
  );
  await Promise.all(sentinels.map((one) => until(() => one.ask("INFO", "sentinel"), "slaves=1,sentinels=3")));
  const url = `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/queues`;
  return createGroup(url, { pair: [primary, other], others: sentinels, folder });
}

/** Starts a cluster of three primaries. The one with the queues' keys has a replica, which takes over after a second. */
export async function startCluster(server: string): Promise<RedisGroup> {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-cluster-"));
  const args = [...MEMORY, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];
  const nodes = await Promise.all([1, 2, 3, 4].map(() => makeNode(server, folder, args)));
  await Promise.all(nodes.map((node) => node.start()));
  const [first, second, third, fourth] = nodes;
  if (first === undefined || second === undefined || third === undefined || fourth === undefined)
    throw new Error("there are four nodes");
  await first.ask("CLUSTER", "ADDSLOTSRANGE", "0", "5460");
  await second.ask("CLUSTER", "ADDSLOTSRANGE", "5461", "10922");
  await third.ask("CLUSTER", "ADDSLOTSRANGE", "10923", "16383");
  for (const [epoch, node] of nodes.entries()) {
    await node.ask("CLUSTER", "SET-CONFIG-EPOCH", String(epoch + 1));
    if (node !== first) await node.ask("CLUSTER", "MEET", "127.0.0.1", String(first.port));
  }
  await Promise.all(nodes.map((node) => until(() => node.ask("CLUSTER", "INFO"), "cluster_known_nodes:4")));
  await until(() => fourth.ask("CLUSTER", "INFO"), "cluster_state:ok");
  const slot = Number(await first.ask("CLUSTER", "KEYSLOT", KEY));
  const owner = [first, second, third][Math.floor(slot / 5_461.34)] ?? first;
  await fourth.ask("CLUSTER", "REPLICATE", String(await owner.ask("CLUSTER", "MYID")));
  await until(() => fourth.ask("INFO", "replication"), "master_link_status:up");
  await Promise.all(nodes.map((node) => until(() => node.ask("CLUSTER", "INFO"), "cluster_state:ok")));
  const url = `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
  const others = nodes.filter((node) => node !== owner && node !== fourth);
  return createGroup(url, { pair: [owner, fourth], others, folder });
}
