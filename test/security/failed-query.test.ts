import { writeFileSync } from "node:fs";
import path from "node:path";
import { sql } from "drizzle-orm";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createLog } from "#lib/log.ts";
import { post } from "../archive/support.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { call, makeKey, startArchive } from "../faces/http/start-archive.ts";
import { startServiceProcess } from "../faults/service-process.ts";
import { createBackend } from "../store/queue/support/backend.ts";
import { recorder } from "../store/queue/support/recorder.ts";
import { openJobQueue } from "../store/queue/support/store.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const PERSON = "203.0.113.7";
const NOW = Date.now();
let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
});

/** Fails with the address among its parameters. */
const ask = () => database.db.execute(sql`select ${`${PERSON}\nat ${PERSON}`}::text from no_such_table`);

test("S15: a query that fails is logged with what was wrong, and without what was asked for", async () => {
  const lines: string[] = [];
  const log = createLog({ level: "info", stream: { write: (line) => lines.push(line) } });
  const thrown = await ask().catch((error: unknown) => error as Error);
  log.error({ err: thrown }, "failed");
  log.error({ err: new Error("outer", { cause: thrown }) }, "failed");
  log.error(thrown as never);

  expect(thrown).toMatchObject({ message: expect.stringContaining(PERSON) });
  expect(lines.join("")).not.toContain(PERSON);
  expect(lines[0]).toContain('relation \\"no_such_table\\" does not exist');
  expect(lines[0]).toContain("select $1::text from no_such_table");
});

test("S15: a search that fails names the address that it was for neither in the answer nor in the log", async () => {
  const { url, lines } = await startArchive(database.url, {}, {}, { zoneIds: [101] });
  const { key } = await makeKey(database, "reader");
  await database.pool.query("alter table waf_events rename to elsewhere");
  const filters = [{ field: "ip", op: "eq", value: [PERSON] }];
  const body = { from: NOW - 3_600_000, to: NOW, filters, query: "canary" };
  const answer = await call(url, "/shield/event-logs/101/search", key, post(body));

  expect(answer.status).toBe(500);
  expect(lines.join("")).toContain("request failed");
  for (const text of [await answer.text(), lines.join("")]) expect(text).not.toMatch(/203\.0\.113|canary/);
});

test("a job that fails in a query leaves nothing of its parameters in the queue, where no erasure comes", async () => {
  const { job, runs } = recorder("failing", async () => void (await ask()));
  const jobQueue = openJobQueue(createBackend("postgres", database.url), [{ ...job, attempts: 1 }]);
  jobQueue.startWorkers();
  await jobQueue.enqueue(job.name, { zoneId: 101 }, "once");
  const kept = async () => {
    const { rows } = await database.pool.query<{ row: string }>("select j::text as row from bullmq.job j");
    return rows.map(({ row }) => row).join("\n");
  };
  await vi.waitFor(async () => expect(await kept()).toContain("no_such_table"), { timeout: 20_000 });
  expect(runs).toEqual([101]);
  expect(await kept()).not.toContain(PERSON);
});

test("S13: the error about a file does not contain the file's control characters", async () => {
  const file = path.join(makeTemporaryFolder("config"), "longwatch.yaml");
  writeFileSync(file, 'channels: { "a\\e[2J": { kind: terminal } }\n');
  const service = startServiceProcess({ LONGWATCH_CONFIG: file });
  expect(await service.exited).toBe(2);
  expect(service.printed()).toContain("channels.a\\u001b[2J: must be");
});

test("a command that cannot reach the database says why, in a line without SQL", async () => {
  const service = startServiceProcess({ DATABASE_URL: "postgres://user:canary@127.0.0.1:1/app" }, "status");
  expect(await service.exited).toBe(1);
  expect(service.printed()).toBe(
    "longwatch status: Postgres at 127.0.0.1:1 cannot be reached (ECONNREFUSED): check that it runs and that DATABASE_URL is correct\n",
  );
});
