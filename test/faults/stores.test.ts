import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { migrate } from "#db/migrate.ts";
import { openEmulator } from "../emulator/support.ts";
import { startSoakPostgres } from "../soak/soak-postgres.ts";
import { createBackend } from "../store/queue/support/backend.ts";
import { recorder } from "../store/queue/support/recorder.ts";
import { askRedis, openJobQueue } from "../store/queue/support/store.ts";
import { findRedisServer } from "../support/redis.ts";
import { findBreaches, findMissing, readShown } from "./invariants.ts";
import { createReplica, ZONE } from "./replica.ts";
import { startTcpProxy } from "./tcp-proxy.ts";

const server = findRedisServer();

function makeFolder(name: string): string {
  const folder = mkdtempSync(path.join(tmpdir(), `longwatch-${name}-`));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("F32: Postgres that crashes and comes back at another address in the middle of ingest costs no event and none twice", async () => {
  const postgres = await startSoakPostgres(makeFolder("crash"));
  onTestFinished(() => postgres.stop());
  const emulator = await openEmulator({
    zones: [ZONE],
    historyHours: 6,
    eventsPerSecond: 0.05,
    pageSize: 40,
  });
  await migrate({ url: postgres.url });
  const replica = createReplica({
    databaseUrl: postgres.url,
    platformUrl: emulator.url,
    accessKey: emulator.accessKey,
    clock: () => emulator.now(),
  });
  onTestFinished(() => replica.close());
  for (const how of ["immediate", "fast"] as const) {
    const cut = postgres.proxy.cutCommit(how === "fast" ? "before" : "after");
    const runs = ["poll-events", "walk-days"].map((job) => replica.run(job).catch(() => undefined));
    await vi.waitFor(() => expect(cut.wasCut()).toBe(true), { timeout: 20_000 });
    await postgres.restart(how, 0);
    await Promise.all(runs);
    await postgres.query(
      "update leases set expires_at = now() - interval '1 second' where expires_at is not null",
    );
    emulator.advance(20 * 60_000);
  }
  for (const job of ["poll-events", "walk-days", "poll-events", "roll-up-trends"]) {
    await replica.run(job).catch(() => replica.run(job));
  }
  const shown = await readShown(emulator.url, ZONE);
  expect(await findBreaches(replica.database, ZONE, async () => shown)).toEqual([]);
  expect(await findMissing(replica.database, ZONE, shown)).toEqual([]);
});

test.skipIf(server === null)(
  "F28: a Redis that runs as a cluster accepts jobs, because a queue's keys share one slot",
  async () => {
    const probe = await startTcpProxy(1);
    const { port } = probe;
    await probe.close();
    const args = ["--port", String(port), "--bind", "127.0.0.1", "--dir", makeFolder("cluster")];
    // A node that has met no other one does not know its own address.
    const cluster = ["--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1"];
    const redis = spawn(server ?? "", [...args, ...cluster, "--save", ""], {
      stdio: "ignore",
    });
    const ended = once(redis, "exit");
    onTestFinished(async () => {
      redis.kill("SIGKILL");
      await ended;
    });
    const url = `redis://127.0.0.1:${port}`;
    const ask = (...words: [string, ...string[]]) => askRedis(url, ...words);
    await vi.waitFor(() => ask("CLUSTER", "ADDSLOTSRANGE", "0", "16383"), { timeout: 10_000 });
    await vi.waitFor(async () => expect(String(await ask("CLUSTER", "INFO"))).toContain("cluster_state:ok"), {
      timeout: 10_000,
    });
    const { job, runs } = recorder("in-a-cluster");
    const jobQueue = openJobQueue(createBackend("redis", `redis+cluster://127.0.0.1:${port}`), [job]);
    jobQueue.startWorkers();
    expect(await jobQueue.enqueue(job.name, { zoneId: 7 }, "cluster")).toBe(true);
    await vi.waitFor(() => expect(runs).toEqual([7]), { timeout: 10_000 });
  },
);
