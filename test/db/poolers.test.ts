import { execFile } from "node:child_process";
import path from "node:path";
import { promisify } from "node:util";
import { expect, inject, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { migrate } from "#db/migrate.ts";
import { sharesSessions } from "#db/postgres/server.ts";
import { migrateCommand } from "#faces/cli/backup.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { createBackend } from "../store/queue/support/backend.ts";
import { recorder } from "../store/queue/support/recorder.ts";
import { openJobQueue } from "../store/queue/support/store.ts";
import { createTestDatabase } from "../support/database.ts";
import { findProgram } from "../support/find-program.ts";
import { startPgBouncer } from "../support/pgbouncer.ts";
import { quickEnvironment } from "../support/quick-environment.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const program = findProgram("pgbouncer");
const PROGRAM = path.join(import.meta.dirname, "../../src/main.ts");
const RULE = "connect to Postgres directly, or through a pooler in session mode";

async function openPooler(mode: "session" | "transaction" | "statement", template?: string) {
  const database = await createTestDatabase(template);
  onTestFinished(() => database.drop());
  const pooler = await startPgBouncer(program ?? "", database.url, mode);
  onTestFinished(() => pooler.stop());
  return { ...database, url: pooler.url, direct: database.url };
}

test.skipIf(program === null)(
  "behind a pooler in session mode a database is migrated, and its queue runs jobs",
  async () => {
    const { url } = await openPooler("session");
    await migrate({ url });
    const { job, runs } = recorder("pooled");
    const queue = openJobQueue(createBackend("postgres", url), [job]);
    queue.startWorkers();
    await queue.enqueue(job.name, { zoneId: 101 }, "tick_a");
    await expect.poll(() => runs, { timeout: 20_000 }).toEqual([101]);
    const database = createDatabase({
      url,
      max: 4,
      applicationName: "longwatch test",
      onError: () => undefined,
    });
    onTestFinished(() => database.close());
    const { rows } = await database.pool.query("select current_setting('statement_timeout') as limited");
    expect(rows).toEqual([{ limited: "1min" }]);
  },
);

test.skipIf(program === null).each(["transaction", "statement"] as const)(
  "a pooler in %s mode is refused with one sentence, and nothing is changed",
  async (mode) => {
    const { url, direct } = await openPooler(mode);
    const { code, err } = await runStoreCommand(migrateCommand, { DATABASE_URL: url }, [], {
      now: Date.now(),
    });
    expect([code, err]).toEqual([2, expect.stringContaining(RULE)]);
    const database = createDatabase({
      url: direct,
      max: 1,
      applicationName: "longwatch test",
      onError: () => undefined,
    });
    onTestFinished(() => database.close());
    const { rows } = await database.pool.query("select to_regclass('public.waf_events') is null as empty");
    expect(rows).toEqual([{ empty: true }]);
  },
);

test.skipIf(program === null)(
  "a pooler in transaction mode is found although other clients use it",
  async () => {
    const { url } = await openPooler("transaction", inject("migratedTemplate"));
    const busy = createDatabase({ url, max: 5, applicationName: "longwatch test", onError: () => undefined });
    onTestFinished(() => busy.close());
    const over = new AbortController();
    const work = Promise.all(
      Array.from({ length: 5 }, async () => {
        while (!over.signal.aborted) await busy.pool.query("select 1");
      }),
    );
    for (let attempt = 0; attempt < 10; attempt += 1) expect(await sharesSessions(url)).toBe(true);
    over.abort();
    await work;
  },
);

test("a server without a pooler gives each connection a session", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  expect(await sharesSessions(database.url)).toBe(false);
});

test.skipIf(program === null)(
  "start behind a pooler in transaction mode ends at once with exit code 2",
  async () => {
    const { url } = await openPooler("transaction", inject("migratedTemplate"));
    const started = await promisify(execFile)(process.execPath, [PROGRAM, "start"], {
      env: {
        ...quickEnvironment(),
        DATABASE_URL: url,
        LONGWATCH_DATA_DIR: makeTemporaryFolder("pooled"),
        LONGWATCH_PORT: "0",
      },
    }).catch((failed: unknown) => failed);
    expect(started).toMatchObject({ code: 2, stderr: expect.stringContaining(RULE) });
    expect((started as { stderr: string }).stderr).not.toContain("    at ");
  },
);
