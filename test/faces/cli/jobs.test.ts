import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { beatReplica, endReplica } from "#db/postgres/leases.ts";
import { replicas } from "#db/schema/service.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { TICK_NAMES, type TickReport } from "#model/schedule.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { testBothWays, type Way } from "./both-ways.ts";

const jobsCommand = await loadSubject("jobs");

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

const testWays = testBothWays(jobsCommand, () => ({ database, now: RAN_AT }));

interface Listed {
  readonly items: readonly { readonly job: string; readonly tick: object | null }[];
}

async function listItems(run: Way["run"]) {
  const { items } = JSON.parse((await run("list", "--json")).out) as Listed;
  return items;
}

testWays.both(
  "jobs list shows expression, last run, next run, and why a run did nothing",
  async ({ run }) => {
    const lastRun = { at: RAN_AT, result: "nothing to do", why: "zone 101: no day needs a pass" } as const;
    await beat("one", { "walk-days": { expression: "0 0 0 1 1 *", lastRun } });
    const year = new Date().getUTCFullYear() + 1;

    const lines = (await run("list")).out.split("\n");
    expect(lines.find((line) => line.startsWith("walk-days"))).toMatch(
      new RegExp(
        `^walk-days +0 0 0 1 1 \\* +2026-11-20 15:30:10 +${year}-01-01 00:00 +nothing to do: zone 101: no day needs a pass$`,
      ),
    );
    expect(lines.find((line) => line.startsWith("send-heartbeat"))).toMatch(
      / - +- +- +no process runs it; it needs LONGWATCH_HEARTBEAT_URL$/,
    );
    const items = await listItems(run);
    expect(items.flatMap(({ job, tick }) => (tick === null ? [] : job))).toEqual([...TICK_NAMES].sort());
    expect(items.find(({ job }) => job === "walk-days")?.tick).toEqual({
      expression: "0 0 0 1 1 *",
      lastRun: { ...lastRun, at: new Date(RAN_AT).toISOString() },
      nextAt: `${year}-01-01T00:00:00.000Z`,
      off: null,
    });
  },
);

testWays("the last run of any process is shown, and the expression of one that is alive", async ({ run }) => {
  const done = (at: number) => ({ at, result: "done", why: null }) as const;
  await beat("old", { sweep: { expression: "*/10 * * * * *", lastRun: done(RAN_AT + 5_000) } });
  await beat("new", { sweep: { expression: "*/20 * * * * *", lastRun: done(RAN_AT) } });
  await endReplica(database.db, "old");
  const sweep = async () => {
    return (await listItems(run)).find(({ job }) => job === "sweep")?.tick;
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
