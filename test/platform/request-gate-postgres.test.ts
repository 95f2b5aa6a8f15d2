import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { openRequestGates, type RequestGateParts, toRequestBudget } from "#app/open-accounts.ts";
import {
  MAX_PAUSE_MS,
  pauseBudget,
  readBudgets,
  readPauses,
  takeTokens,
} from "#db/ingest/request-budgets.ts";
import { requestBudgets } from "#db/schema/service.ts";
import { createSecret } from "#lib/secret.ts";
import { createSharedGate } from "#platform/budget/shared-gate.ts";
import { openGate, ZonePausedError } from "#platform/transport/call.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { startCutProxy } from "./support/cut-proxy.ts";

const WAIT_MS = 20_000;
let database: MigratedDatabase;
let never: AbortSignal;

beforeAll(async () => {
  database = await createMigratedDatabase();
});

afterAll(() => database.drop());

beforeEach(async () => {
  await database.db.delete(requestBudgets);
  never = new AbortController().signal;
});

/** One replica's gate. */
function open(requestsPerSecond: number, parts: Partial<RequestGateParts> = {}) {
  const opened = openRequestGates({
    databaseUrl: createSecret(database.url),
    accounts: [toAccount(requestsPerSecond)],
    ...parts,
  });
  onTestFinished(() => opened.close());
  return { gate: opened.gates[0] ?? openGate };
}

const toAccount = (requestsPerSecond: number) => ({ name: "default", requestsPerSecond });

async function readTokens(requestsPerSecond: number) {
  const [read] = await readBudgets(database.db, [toRequestBudget(toAccount(requestsPerSecond))]);
  return read;
}

async function setTokens(tokens: number): Promise<void> {
  await database.db.delete(requestBudgets);
  await database.db.insert(requestBudgets).values({ name: "edge", tokens, refilledAt: new Date() });
}

const readRow = async () => (await database.db.select().from(requestBudgets))[0];

test("a 429 to one replica pauses all replicas (F40)", async () => {
  const [one, other] = [open(100), open(100)];
  await other.gate.enter("normal", never, null);
  one.gate.limited(60_000, null);
  await vi.waitFor(async () => expect(await readTokens(100)).toMatchObject({ isPaused: true }));
  const third = open(100);
  const before = (await readRow())?.refilledAt;
  const stop = new AbortController();
  const entering = third.gate.enter("normal", stop.signal, null);
  // It has asked and was refused.
  await vi.waitFor(async () => expect((await readRow())?.refilledAt).not.toEqual(before), WAIT_MS);
  stop.abort(new Error("enough"));
  await expect(entering).rejects.toThrow("enough");
  const stopOne = new AbortController();
  const alsoEntering = one.gate.enter("normal", stopOne.signal, null);
  stopOne.abort(new Error("enough"));
  await expect(alsoEntering).rejects.toThrow("enough");
});

test("a zone that the platform refuses waits on every replica, and the other zones go on", async () => {
  const [one, other] = [open(100), open(100)];
  one.gate.limited(86_400_000, 101);
  await vi.waitFor(async () => expect(await readPauses(database.db)).toHaveLength(1));
  for (const { gate } of [one, other]) {
    const refused = gate.enter("normal", never, 101);
    await expect(refused).rejects.toThrow(/the platform refused zone 101 \(429\).* in \d+ s/);
    await expect(refused).rejects.toBeInstanceOf(ZonePausedError);
    await gate.enter("normal", never, 102);
    await gate.enter("low", never, null);
  }
});

test("a short pause of a zone is waited out, and an answer ends the refusal for every replica", async () => {
  const [one, other] = [open(100), open(100)];
  one.gate.limited(null, 101);
  await one.gate.enter("normal", never, 101);
  expect((await readPauses(database.db)).map(({ zoneId }) => zoneId)).toEqual([101]);
  one.gate.answered(101);
  await vi.waitFor(async () => expect((await readPauses(database.db)).length).toBe(0), WAIT_MS);
  await other.gate.enter("normal", never, 101);
  // A caller that gives up while its zone waits.
  one.gate.limited(20_000, 101);
  const stop = new AbortController();
  const waiting = one.gate.enter("normal", stop.signal, 101);
  stop.abort(new Error("no longer needed"));
  await expect(waiting).rejects.toThrow("no longer needed");
});

test("refusals of two zones on two replicas pause every zone", async () => {
  const [one, other] = [open(100), open(100)];
  one.gate.limited(60_000, 101);
  await vi.waitFor(async () => expect(await readPauses(database.db)).toHaveLength(1));
  other.gate.limited(60_000, 102);
  await vi.waitFor(async () => expect(await readTokens(100)).toMatchObject({ isPaused: true }));
  const stop = new AbortController();
  const entering = open(100).gate.enter("normal", stop.signal, 103);
  stop.abort(new Error("enough"));
  await expect(entering).rejects.toThrow("enough");
});

test("a limit without a duration is a short pause, and callers go on after it by themselves", async () => {
  const { gate } = open(1_000);
  gate.limited(null, null);
  await gate.enter("normal", never, null);
  expect(await readTokens(1_000)).toMatchObject({ isPaused: false });
});

test("a caller that is aborted while it waits leaves its turn to the others", async () => {
  await setTokens(-4);
  const waited: number[] = [];
  const { gate } = open(20, { onWaited: (ms) => void waited.push(ms) });
  const stop = new AbortController();
  const given = gate.enter("normal", stop.signal, null);
  const patient = gate.enter("normal", never, null);
  stop.abort(new Error("no longer needed"));
  await expect(given).rejects.toThrow("no longer needed");
  await patient;
  expect(waited).toHaveLength(2);
  const gone = AbortSignal.abort(new Error("was never here"));
  await expect(gate.enter("normal", gone, null)).rejects.toThrow("was never here");
});

test("a normal caller passes before low ones that came earlier", async () => {
  await setTokens(-5);
  const { gate } = open(20);
  const passed: string[] = [];
  const enter = async (priority: "normal" | "low") => {
    await gate.enter(priority, never, null);
    passed.push(priority);
  };
  await Promise.all([enter("low"), enter("low"), enter("low"), enter("normal")]);
  expect(passed).toEqual(["normal", "low", "low", "low"]);
});

test("at the slowest rate low callers are served too", async () => {
  const { gate } = open(1);
  await gate.enter("low", never, null);
  await gate.enter("low", never, null);
});

test("closing rejects all waiting callers", async () => {
  await pauseBudget(database.db, "edge", 60_000);
  const { gates, ...opened } = openRequestGates({
    databaseUrl: createSecret(database.url),
    accounts: [toAccount(10), { ...toAccount(10), name: "shop" }],
  });
  const [gate = openGate] = gates;
  const entering = gate.enter("normal", never, null);
  await Promise.all([expect(entering).rejects.toThrow("closed"), opened.close()]);
  await expect(gate.enter("normal", never, null)).rejects.toThrow("closed");
});

test("a page costs no round trip of its own while there are tokens", async () => {
  const budget = toRequestBudget(toAccount(1_000));
  let takes = 0;
  const gate = createSharedGate({
    ratePerSecond: budget.ratePerSecond,
    take(atMost) {
      takes++;
      return takeTokens(database.db, budget, { atMost, reserve: 0 });
    },
    pause: async () => ({ isForAll: true }),
    answered: async () => {},
    maxPauseMs: MAX_PAUSE_MS,
    onWaited: () => {},
    onUnshared: () => {},
  });
  onTestFinished(() => gate.close());
  for (let count = 0; count < 200; count++) await gate.enter("normal", never, null);
  expect(takes).toBeLessThan(100);
});

test("without Postgres a replica goes on at a quarter of the rate, and shares again when it is back", async () => {
  const proxy = await startCutProxy(database.url);
  onTestFinished(() => proxy.close());
  const changes: string[] = [];
  const openedAt = performance.now();
  const { gate } = open(100, {
    databaseUrl: createSecret(proxy.url),
    onUnshared: (error) => void changes.push(error === null ? "shared" : "alone"),
  });
  // The bucket is far in debt, so callers wait when the connection breaks.
  await setTokens(-100_000);
  const before = (await readRow())?.refilledAt;
  const callers = Array.from({ length: 30 }, () => gate.enter("normal", never, null));
  await vi.waitFor(async () => expect((await readRow())?.refilledAt).not.toEqual(before), WAIT_MS);
  proxy.cut();
  await Promise.all(callers);
  expect(callers.length).toBeLessThanOrEqual(((performance.now() - openedAt) / 1_000) * 25);
  expect(changes).toEqual(["alone"]);

  proxy.heal();
  await setTokens(50);
  await vi.waitFor(async () => {
    await gate.enter("normal", never, null);
    expect(changes).toEqual(["alone", "shared"]);
  }, WAIT_MS);
});

test("a Postgres that stops answering delays no caller for ever", async () => {
  const proxy = await startCutProxy(database.url);
  onTestFinished(() => proxy.close());
  const changes: string[] = [];
  const { gate } = open(1_000, {
    databaseUrl: createSecret(proxy.url),
    onUnshared: (error) => void changes.push(error === null ? "shared" : "alone"),
  });
  await gate.enter("normal", never, null);
  proxy.freeze();
  // More than can be left of the first take.
  for (let count = 0; count < 20; count++) await gate.enter("normal", never, null);
  expect(changes).toEqual(["alone"]);
  proxy.heal();
  await vi.waitFor(async () => {
    await gate.enter("normal", never, null);
    expect(changes).toEqual(["alone", "shared"]);
  }, WAIT_MS);
});

test("a bucket whose row is locked delays no caller for ever", async () => {
  await setTokens(50);
  const blocker = await database.pool.connect();
  onTestFinished(() => blocker.release());
  await blocker.query("begin");
  await blocker.query("select 1 from request_budgets for update");
  const changes: unknown[] = [];
  const { gate } = open(100, { onUnshared: (error) => void changes.push(error) });
  await gate.enter("normal", never, null);
  expect(changes).toEqual([expect.any(Error)]);
  await blocker.query("rollback");
});
