import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { replicas } from "#db/schema/replicas.ts";
import { beatReplica, endReplica } from "#db/service/replicas.ts";
import { jobsCommand } from "#faces/cli/jobs/jobs.ts";
import { TICK_NAMES, type TickReport } from "#model/schedule.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { runStoreCommand } from "./run-store-command.ts";

const RAN_AT = Date.UTC(2026, 10, 20, 15, 30, 10, 250);
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
beforeEach(() => database.db.delete(replicas));
afterAll(() => database.drop());

function beat(id: string, ticks: Partial<Record<(typeof TICK_NAMES)[number], TickReport>>) {
  const replica = { id, host: "a", pid: 1, version: "1", roles: ["ingest"], zoneIds: [101], ticks };
  return beatReplica(database.db, replica);
}

const list = async (...args: string[]) =>
  (await runStoreCommand(jobsCommand, { DATABASE_URL: database.url }, ["list", ...args], { now: RAN_AT }))
    .out;

interface Listed {
  readonly items: readonly ({ readonly job: string; readonly nextAt: string | null } & object)[];
}

test("jobs list shows expression, last run, next run, and why a run did nothing", async () => {
  const lastRun = { at: RAN_AT, result: "nothing to do", why: "zone 101: no day needs a pass" } as const;
  await beat("one", { "walk-days": { expression: "0 0 0 1 1 *", lastRun } });
  const year = new Date().getUTCFullYear() + 1;

  const lines = (await list()).split("\n");
  expect(lines.find((line) => line.startsWith("walk-days"))).toMatch(
    new RegExp(
      `^walk-days +0 0 0 1 1 \\* +2026-11-20 15:30:10 +${year}-01-01 00:00 +nothing to do: zone 101: no day needs a pass$`,
    ),
  );
  expect(lines.find((line) => line.startsWith("send-heartbeat"))).toMatch(
    / - +- +- +no process runs it; it needs LONGWATCH_HEARTBEAT_URL$/,
  );
  const { items } = JSON.parse(await list("--json")) as Listed;
  expect(items.map(({ job }) => job)).toEqual(TICK_NAMES);
  expect(items.find(({ job }) => job === "walk-days")).toEqual({
    job: "walk-days",
    expression: "0 0 0 1 1 *",
    lastRun: { ...lastRun, at: new Date(RAN_AT).toISOString() },
    nextAt: `${year}-01-01T00:00:00.000Z`,
    off: null,
  });
});

test("the last run of any process is shown, and the expression of one that is alive", async () => {
  const done = (at: number) => ({ at, result: "done", why: null }) as const;
  await beat("old", { sweep: { expression: "*/10 * * * * *", lastRun: done(RAN_AT + 5_000) } });
  await beat("new", { sweep: { expression: "*/20 * * * * *", lastRun: done(RAN_AT) } });
  await endReplica(database.db, "old");
  const sweep = async () => {
    const { items } = JSON.parse(await list("--json")) as Listed;
    return items.find(({ job }) => job === "sweep");
  };
  expect(await sweep()).toMatchObject({
    expression: "*/20 * * * * *",
    lastRun: { at: new Date(RAN_AT + 5_000).toISOString() },
    nextAt: expect.stringMatching(/:[024]0\.000Z$/),
    off: null,
  });
  await endReplica(database.db, "new");
  expect(await sweep()).toMatchObject({
    expression: "*/20 * * * * *",
    nextAt: null,
    off: "no process runs it",
  });
});
