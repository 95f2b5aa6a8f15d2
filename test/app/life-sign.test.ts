import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { openLifeSign } from "#app/open-life-sign.ts";
import { readReplicas } from "#db/postgres/leases.ts";
import { assessService } from "#jobs/health/conditions/processes.ts";
import { createLog } from "#lib/log.ts";
import { createStopStack } from "#lib/process.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { startServiceProcess } from "../faults/service-process.ts";

const lastRun = { at: 1_800_000_000_000, result: "done", why: null } as const;

async function open() {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const logged: string[] = [];
  const log = createLog({ level: "warn", stream: { write: (line) => logged.push(line) } });
  const stack = createStopStack((_part, error) => {
    throw error;
  });
  const begin = () =>
    openLifeSign(
      {
        config: { roles: ["ingest", "http"] },
        database,
        log,
        zoneIds: [101, 102],
        version: "0.1.0",
        ticks: () => ({ "poll-events": { expression: "* * * * * *", lastRun } }),
        everyMs: 20,
      },
      stack,
    );
  return { database, logged, stack, begin };
}

test("a process names itself with its roles and zones, renews its row, and says that it stopped", async () => {
  const { database, stack, begin } = await open();
  await begin();
  const [first] = await readReplicas(database.db);
  expect(first).toMatchObject({
    pid: process.pid,
    roles: ["ingest", "http"],
    zoneIds: [101, 102],
    stoppedAt: null,
    ticks: { "poll-events": { expression: "* * * * * *", lastRun } },
  });
  await vi.waitFor(async () => {
    const [later] = await readReplicas(database.db);
    expect(later?.seenAt).toBeGreaterThan(first?.seenAt ?? Number.POSITIVE_INFINITY);
    expect(later).toMatchObject({ id: first?.id, startedAt: first?.startedAt });
  });
  await stack.stop();
  const [stopped, ...others] = await readReplicas(database.db);
  expect(others).toEqual([]);
  expect(stopped?.stoppedAt).toBe(stopped?.seenAt);
});

test("a life sign that cannot be written stops nothing and is logged once while it lasts", async () => {
  const { database, logged, stack, begin } = await open();
  await begin();
  await database.pool.query("alter table replicas rename to elsewhere");
  await vi.waitFor(() => expect(logged).toHaveLength(1));
  await database.pool.query("alter table elsewhere rename to replicas");
  const [before] = await readReplicas(database.db);
  await vi.waitFor(async () => {
    const [later] = await readReplicas(database.db);
    expect(later?.seenAt).toBeGreaterThan(before?.seenAt ?? Number.POSITIVE_INFINITY);
  });
  expect(logged).toHaveLength(1);
  expect(logged[0]).toContain("sign of life not written");
  await stack.stop();
});

test("a real process is alive until it is stopped, and silent once it was killed", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "longwatch-life-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const { database } = await open();
  const states = async () =>
    assessService(await readReplicas(database.db)).replicas.map(({ state }) => state);
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    const service = startServiceProcess({
      DATABASE_URL: database.url,
      LONGWATCH_DATA_DIR: folder,
      LONGWATCH_ROLES: "alerts",
      EDGE_API_URL: "http://127.0.0.1:9",
      EDGE_API_KEY: "key",
      EDGE_SHIELD_ZONES: "101",
    });
    onTestFinished(() => void service.child.kill("SIGKILL"));
    await expect.poll(() => service.printed(), { timeout: 60_000 }).toContain("service started");
    expect((await states())[0]).toBe("alive");
    service.child.kill(signal);
    await service.exited;
  }
  await database.pool.query(
    "update replicas set seen_at = seen_at - interval '61 s' where stopped_at is null",
  );
  expect((await states()).sort()).toEqual(["silent", "stopped"]);
});
