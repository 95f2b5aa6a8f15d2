import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { listDueRuns, readRun } from "#db/health/requested-runs.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { createEmulator, type Emulator } from "#emulator/emulator.ts";
import { HOUR_MS } from "#lib/units.ts";
import { NOW, oracle } from "../emulator/support.ts";
import { ask, openApiWorld } from "../faces/http/api/api-world.ts";
import { expectedRows, openChangingPlatform, storedRows, withoutRoute } from "../ingest/ingest-support.ts";
import { openRuns } from "./run-support.ts";

const world = openApiWorld();
const ZONE = 101;
const RUNS = "/api/v1/coverage/runs";
let emulator: Emulator;
let span: { from: number; to: number };

interface Item {
  readonly id: number;
  readonly state: string;
  readonly problem: string | null;
  readonly backfill: { readonly newEvents: number } | null;
  readonly checks: readonly { name: string; differenceCount: number; failure: string | null }[] | null;
}

beforeAll(async () => {
  emulator = await createEmulator({
    clock: () => NOW,
    historyHours: 6,
    eventsPerSecond: 0.03,
    switches: { pageSize: 90 },
  });
  const to = emulator.now();
  span = { from: Math.floor(to / HOUR_MS - 5) * HOUR_MS, to };
  const startsAt = new Date(span.from);
  await world.database().db.insert(coverageWindows).values({ zoneId: ZONE, startsAt });
});
afterAll(() => emulator.close());
beforeEach(async () => {
  await world.database().pool.query("truncate requested_runs");
  await world.database().pool.query("update coverage_windows set read_again = null");
});

const iso = ({ from, to } = span) => ({ from: new Date(from).toISOString(), to: new Date(to).toISOString() });
const post = (url: string, key: string, body: object, status = 202) =>
  ask<Item>(url, RUNS, key, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
    status,
  });
let readings = 0;
/** Moves on at each reading: a run reads a span again only if it was read before the run was requested. */
const clock = () => emulator.now() + readings++;
const start = () => world.start({ clock });

/** The job of one process, against the platform at this address. */
const openRunner = (url = emulator.url) =>
  openRuns({
    database: world.database(),
    clock,
    platform: { url, accessKey: emulator.accessKey },
  });

/** The ids of the runs that are due so much later. */
const listDue = async (inMs: number) =>
  (await listDueRuns(world.database().db, { nowMs: emulator.now() + inMs, limit: 100 })).map(({ id }) => id);

test("two starts of one span at once are one run with one audit entry, and only operators may start", async () => {
  const { url } = await start();
  const operator = await world.key("operator");
  const body = { kind: "backfill", zone: ZONE, ...iso() };
  const entries = async () => {
    const { rows } = await world
      .database()
      .pool.query("select from audit_entries where action = 'backfill.requested'");
    return rows.length;
  };
  const before = await entries();
  const started = await Promise.all([post(url, operator, body), post(url, operator, body)]);
  expect(new Set(started.map(({ id }) => id)).size).toBe(1);
  expect((await entries()) - before).toBe(1);
  await post(url, await world.key("reader"), body, 403);
  await post(url, await world.key("operator", { zoneIds: [102] }), body, 403);
  await post(url, operator, { ...body, from: "2020-01-01T00:00:00Z" }, 422);
  await post(url, operator, { ...body, to: body.from }, 422);
  await post(url, operator, { ...body, zone: 999 }, 404);
  const listed = await ask<{ items: Item[] }>(url, RUNS, await world.key("reader", { zoneIds: [102] }));
  expect(listed.items).toEqual([]);
});

test("a backfill that was killed goes on where it stopped, and ends with every event once", async () => {
  const { url } = await start();
  const key = await world.key("operator");
  const { id } = await post(url, key, { kind: "backfill", zone: ZONE, ...iso() });
  const killed = new AbortController();
  let answers = 0;
  const platform = await openChangingPlatform(emulator, (body) => {
    if (++answers === 4) killed.abort(new Error("killed"));
    return body;
  });
  await openRunner(platform).run(id, killed.signal);
  expect((await ask<Item>(url, `${RUNS}/${id}`, key)).state).toBe("running");
  expect(await listDue(0)).toContain(id);
  const runner = openRunner();
  // The second of two runners finds the lease taken.
  await Promise.all([runner.run(id), runner.run(id)]);
  const done = await ask<Item>(url, `${RUNS}/${id}`, key);
  expect(done).toMatchObject({ state: "done", problem: null });
  const expected = expectedRows(
    (await oracle(emulator)).filter(({ timestamp }) => timestamp >= span.from && timestamp < span.to),
  );
  expect(withoutRoute(await storedRows(world.database()))).toEqual(expected);
  expect(done.backfill?.newEvents).toBe(expected.length);
  expect((await readRun(world.database().db, id))?.starts).toBe(2);
  await runner.run(id);
  expect((await readRun(world.database().db, id))?.starts).toBe(2);

  // The same span, asked for again, is read again.
  await world
    .database()
    .pool.query("delete from waf_events where log_id in (select log_id from waf_events limit 5)");
  const again = await post(url, key, { kind: "backfill", zone: ZONE, ...iso() });
  expect(again.id).not.toBe(id);
  await runner.run(again.id);
  expect(await ask<Item>(url, `${RUNS}/${again.id}`, key)).toMatchObject({
    state: "done",
    backfill: { newEvents: 5 },
  });

  // A verification of it compares with the platform and with itself.
  const verified = await post(url, key, { kind: "verify", zone: ZONE, ...iso(), ids: true });
  await runner.run(verified.id);
  const { checks, state } = await ask<Item>(url, `${RUNS}/${verified.id}`, key);
  expect(state).toBe("done");
  expect(checks?.map(({ name }) => name)).toContain("event ids");
  expect(checks?.find(({ name }) => name === "event ids")).toMatchObject({
    differenceCount: 0,
    failure: null,
  });
});

test("a run that fails is started again later each time, with its reason, and given up after its last start", async () => {
  const { url } = await start();
  const key = await world.key("operator");
  const { id } = await post(url, key, { kind: "verify", zone: ZONE, ...iso() });
  const { open } = openRunner();
  const run = open(() => Promise.reject(new Error("no space left")));
  await run(id);
  expect(await ask<Item>(url, `${RUNS}/${id}`, key)).toMatchObject({
    state: "running",
    problem: "no space left",
  });
  expect(await listDue(9_000)).not.toContain(id);
  expect(await listDue(11_000)).toContain(id);
  await run(id);
  expect(await listDue(19_000)).not.toContain(id);
  expect(await listDue(21_000)).toContain(id);
  for (let start = 2; start < 5; start += 1) await run(id);
  const failed = await ask<Item>(url, `${RUNS}/${id}`, key);
  expect(failed).toMatchObject({ state: "failed" });
  expect(failed.problem).toContain("no space left");
  expect(await listDue(3_600_000)).not.toContain(id);
});
