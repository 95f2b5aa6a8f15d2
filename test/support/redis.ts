import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { findProgram } from "./find-program.ts";
import { findFreePort } from "./free-port.ts";

/** `valkey-server` or `redis-server` from PATH, or null. */
export function findRedisServer(): string | null {
  return findProgram("valkey-server", "redis-server");
}

/** Returns the same program if it was built with TLS, else null. */
export function findTlsRedisServer(): string | null {
  const server = findRedisServer();
  if (server === null) return null;
  // A server with TLS starts and reports a missing certificate; a server without TLS does not know the setting.
  const started = spawnSync(server, ["--port", "0", "--tls-port", "1"], { encoding: "utf8" });
  return /tls-cert-file/.test(`${started.stdout}${started.stderr}`) ? server : null;
}

/** Files in PEM. */
export interface RedisTls {
  readonly cert: string;
  readonly key: string;
}

export interface TestRedis {
  readonly url: string;
  kill(): Promise<void>;
  restart(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Starts a real server on a port of its own, with AOF and noeviction as in production; with `tls` it accepts only
 * TLS.
 */
export async function startTestRedis(server: string, tls?: RedisTls): Promise<TestRedis> {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-redis-"));
  const port = await findFreePort();
  let child = await launch(server, port, folder, tls);
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  return {
    url: `${tls === undefined ? "redis" : "rediss"}://127.0.0.1:${port}`,
    kill,
    restart: async () => {
      child = await launch(server, port, folder, tls);
    },
    stop: async () => {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function launch(server: string, port: number, folder: string, tls?: RedisTls): Promise<ChildProcess> {
  const ports =
    tls === undefined
      ? ["--port", String(port)]
      : ["--port", "0", "--tls-port", String(port), "--tls-cert-file", tls.cert, "--tls-key-file", tls.key];
  const args = [
    ...ports,
    ...(tls === undefined ? [] : ["--tls-auth-clients", "no"]),
    "--bind",
    "127.0.0.1",
    "--dir",
    folder,
  ];
  const durable = ["--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory-policy", "noeviction"];
  const child = spawn(server, [...args, ...durable], { stdio: ["ignore", "pipe", "inherit"] });
  await new Promise<void>((resolve, reject) => {
    let output = "";
    child.once("exit", () => reject(new Error(`${server} ended before it was ready: ${output}`)));
    // Read without end, because a full pipe would stop the server.
    child.stdout.on("data", (chunk) => {
      output = (output + String(chunk)).slice(-4_000);
      if (output.includes("Ready to accept connections")) resolve();
    });
  });
  return child;
}
