import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { Redis } from "ioredis";
import { findFreePort } from "./free-port.ts";

/** Servers of Redis of which one takes over when another is killed. They keep nothing on the disk. */
export interface RedisGroup {
  /** As in `REDIS_URL`. */
  readonly url: string;
  /** Runs a command on the server that has the queues' keys. */
  ask(...words: [string, ...string[]]): Promise<unknown>;
  /** Kills the server that has the queues' keys, and waits until another one takes writes. */
  failOver(): Promise<void>;
  /** Starts the killed server again, empty. It becomes a replica. */
  revive(): Promise<void>;
  stop(): Promise<void>;
}

interface Node {
  readonly port: number;
  start(): Promise<void>;
  kill(): Promise<void>;
  ask(...words: [string, ...string[]]): Promise<unknown>;
}

/** A key in the queues' slot. */
const KEY = "{longwatch}:group";

async function makeNode(server: string, folder: string, args: readonly string[]): Promise<Node> {
  const port = await findFreePort();
  const dir = path.join(folder, String(port));
  mkdirSync(dir);
  let child: ChildProcess | null = null;
  const ask: Node["ask"] = async (command, ...rest) => {
    const redis = new Redis(port, "127.0.0.1", { retryStrategy: () => null, maxRetriesPerRequest: 0 });
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
    async kill() {
      if (child === null || child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
    },
  };
}

/** Waits until the answer includes the text. */
async function until(ask: () => Promise<unknown>, text = ""): Promise<void> {
  for (;;) {
    const answer = await ask().catch(() => null);
    if (JSON.stringify(answer ?? "").includes(text) && answer !== null) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const MEMORY = ["--save", "", "--maxmemory-policy", "noeviction"];

/** Starts two servers and three Sentinels, which promote the other server after a second. */
export async function startSentinels(server: string): Promise<RedisGroup> {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-sentinels-"));
  let primary = await makeNode(server, folder, MEMORY);
  let other = await makeNode(server, folder, [...MEMORY, "--replicaof", "127.0.0.1", String(primary.port)]);
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
  return {
    url: `redis+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(",")}/queues`,
    ask: (...words) => primary.ask(...words),
    async failOver() {
      await primary.kill();
      [primary, other] = [other, primary];
      await until(() => primary.ask("SET", KEY, "1"));
    },
    // It may say for a moment that it is the primary, until the Sentinels tell it.
    revive: () => other.start(),
    async stop() {
      await Promise.all([...sentinels, primary, other].map((node) => node.kill()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
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
  let [primary, other] = [owner, fourth];
  return {
    url: `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    ask: (...words) => primary.ask(...words),
    async failOver() {
      await primary.kill();
      [primary, other] = [other, primary];
      await until(() => primary.ask("SET", KEY, "1"));
    },
    async revive() {
      await other.start();
      // On a busy machine the nodes may have changed places again meanwhile.
      await until(() => other.ask("CLUSTER", "INFO"), "cluster_state:ok");
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.kill()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
