import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import pg from "pg";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { startEmbeddedPostgres } from "#store/embedded/postgres.ts";

const HOLDER = path.join(import.meta.dirname, "hold-postgres.ts");

function makeFolder(): string {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-embedded-"));
  chmodSync(folder, 0o755);
  return folder;
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** A process of its own that starts the database and prints its address. */
async function holdInChild(dataDir: string): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [HOLDER, dataDir], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stdout?.on("data", (chunk) => (output += String(chunk)));
  await expect.poll(() => output).toContain("\n");
  return { child, url: output.trim() };
}

/** One cluster for all tests but that of root's folder: making it takes longest. */
const dataDir = makeFolder();
afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

test("a second owner of the same folder is refused while the first one lives, and then keeps what it stored", async () => {
  const first = await startEmbeddedPostgres({ dataDir });
  onTestFinished(() => first.stop());
  await query(first.url, "create table kept as select 42 as answer");
  await expect(startEmbeddedPostgres({ dataDir, startTimeoutMs: 200 })).rejects.toThrow(
    /another Longwatch uses the database in .*starting or stopping/,
  );
  await first.stop();

  const second = await startEmbeddedPostgres({ dataDir });
  onTestFinished(() => second.stop());

  expect(await query(second.url, "select answer from kept")).toEqual([{ answer: 42 }]);
  expect(await query(second.url, "show server_version_num")).toEqual([
    { server_version_num: expect.stringMatching(/^18/) },
  ]);
});

test("S14: the server's process knows nothing of the service's environment, whose PGSSLMODE is not for it either", async () => {
  vi.stubEnv("LONGWATCH_ADMIN_KEY", "canary");
  vi.stubEnv("PGSSLMODE", "verify-full");
  onTestFinished(() => void vi.unstubAllEnvs());
  const postgres = await startEmbeddedPostgres({ dataDir, startTimeoutMs: 10_000 });
  const { url } = postgres;
  onTestFinished(() => postgres.stop());

  await query(url, "create table environment (line text)");
  await query(url, "copy environment from program 'tr ''\\0'' ''\\n'' < /proc/self/environ'");
  const lines = JSON.stringify(await query(url, "select line from environment"));
  expect(lines).toContain("PATH=");
  expect(lines).not.toContain("canary");
});

test("the server stops by itself when its owner is killed, and the next start finds committed rows", async () => {
  const { child, url } = await holdInChild(dataDir);
  await query(url, "create table survived as select 7 as answer");
  child.kill("SIGKILL");
  await once(child, "exit");

  const next = await startEmbeddedPostgres({ dataDir });
  onTestFinished(() => next.stop());

  expect(await query(next.url, "select answer from survived")).toEqual([{ answer: 7 }]);
  await expect(query(url, "select 1")).rejects.toThrow(/ECONNREFUSED/);
});

test("a server that cannot come up says why and leaves nothing running", async () => {
  await expect(startEmbeddedPostgres({ dataDir, settings: ["shared_buffers=nonsense"] })).rejects.toThrow(
    /shared_buffers/,
  );

  const next = await startEmbeddedPostgres({ dataDir });
  await next.stop();
});

test.runIf(process.getuid?.() === 0)(
  "as root the cluster works, and is kept, below a folder that other users cannot enter",
  async () => {
    const folder = makeFolder();
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    chmodSync(folder, 0o700);
    const dataDir = path.join(folder, "clone", ".longwatch");
    const first = await startEmbeddedPostgres({ dataDir });
    const pointer = path.join(dataDir, "postgres-at");
    const cluster = readFileSync(pointer, "utf8");
    onTestFinished(() => rmSync(path.dirname(cluster), { recursive: true, force: true }));
    await query(first.url, "create table kept as select 1 as answer");
    await first.stop();

    const second = await startEmbeddedPostgres({ dataDir });
    expect(await query(second.url, "select answer from kept")).toEqual([{ answer: 1 }]);
    await second.stop();

    // The data folder is deleted: the next start elsewhere removes the unnamed cluster.
    rmSync(path.join(folder, "clone"), { recursive: true });
    const other = await startEmbeddedPostgres({ dataDir });
    const replacement = readFileSync(pointer, "utf8");
    onTestFinished(() => rmSync(path.dirname(replacement), { recursive: true, force: true }));
    await other.stop();
    expect(replacement).not.toBe(cluster);
    expect(existsSync(cluster)).toBe(false);
  },
);
