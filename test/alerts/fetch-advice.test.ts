import { eq, sql } from "drizzle-orm";
import { pino } from "pino";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { advice } from "#db/schema/alerts.ts";
import { leases } from "#db/schema/service.ts";
import { spikes } from "#db/schema/spikes.ts";
import type { Emulator, EmulatorOptions } from "#emulator/emulator.ts";
import { Fault, type FaultInput } from "#emulator/faults.ts";
import { createFetchAdviceJob, type FetchAdviceDeps } from "#jobs/alerts/fetch-advice.ts";
import { createSecret } from "#lib/secret.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { bodyOf, call, NOW, openEmulator } from "../emulator/support.ts";
import { FAILURES } from "./advice/platform-failures.ts";
import { insertSpike } from "./insert-spike.ts";

let database: MigratedDatabase;
const never = new AbortController().signal;
const log = pino({ level: "silent" });

beforeAll(async () => {
  database = await createMigratedDatabase();
});

afterAll(() => database.drop());

beforeEach(async () => {
  await database.db.delete(advice);
  await database.db.delete(spikes);
  await database.db.delete(leases);
});

/** The platform over a socket, without retries inside a call, and how often it was asked. */
async function openPlatform(options: EmulatorOptions = {}) {
  const emulator = await openEmulator({ ...options, historyHours: 1 });
  const accessKey = createSecret(emulator.accessKey);
  const transport = createEdgeTransport({ baseUrl: emulator.url, accessKey, maxAttempts: 1 });
  onTestFinished(() => transport.close());
  return { emulator, edge: createEdgeClient(transport) };
}

async function breakWith(emulator: Emulator, fault: FaultInput): Promise<void> {
  const response = await call(emulator, "/_emulator/faults", {
    method: "POST",
    body: JSON.stringify(Fault.parse(fault)),
  });
  expect(response.status).toBe(200);
}

async function countAsks(emulator: Emulator): Promise<number> {
  const shown = await bodyOf<unknown>(call(emulator, "/_emulator/requests"));
  return JSON.stringify(shown).split("/ai-recommendation/").length - 1;
}

function run(over: Partial<FetchAdviceDeps> & Pick<FetchAdviceDeps, "edge">, signal = never) {
  const afterAdvice = async () => {};
  const deps = { database, clock: () => NOW, log, afterAdvice, ...over };
  return createFetchAdviceJob(deps).run({} as never, signal);
}

const openSpike = (over: Partial<Parameters<typeof insertSpike>[1]> = {}) =>
  insertSpike(database.db, { openedAt: new Date(NOW - 5 * MINUTE_MS), ...over });

const stored = () => database.db.select().from(advice).orderBy(advice.askedAt, advice.ruleId);

test("an open spike's rule is asked about once, and its text is stored as it came", async () => {
  const { emulator, edge } = await openPlatform();
  const spikeId = await openSpike();
  let enqueues = 0;
  const afterAdvice = async () => void (enqueues += 1);
  await run({ edge, afterAdvice });
  await run({ edge, afterAdvice });
  await run({ edge, afterAdvice, clock: () => NOW + 20 * HOUR_MS });

  const answer = await edge.getRecommendation({ shieldZoneId: 101, ruleId: "942100" });
  expect(await stored()).toEqual([
    {
      zoneId: 101,
      ruleId: "942100",
      askedAt: new Date(NOW),
      spikeId,
      success: true,
      text: answer.recommendation?.replaceAll("\0", ""),
      errorKey: null,
    },
  ]);
  expect([await countAsks(emulator), enqueues]).toEqual([2, 1]);
});

test("a closed spike is not asked about", async () => {
  const { emulator, edge } = await openPlatform();
  await openSpike({ closedAt: new Date(NOW) });
  await run({ edge });
  expect([await stored(), await countAsks(emulator)]).toEqual([[], 0]);
});

test("an answer serves the rule's next episode for six hours, then it is asked about again", async () => {
  const { edge } = await openPlatform();
  const first = await openSpike();
  await run({ edge });
  await database.db
    .update(spikes)
    .set({ closedAt: new Date(NOW) })
    .where(eq(spikes.id, first));
  const second = await openSpike({ openedAt: new Date(NOW + 6 * HOUR_MS) });
  await run({ edge, clock: () => NOW + 6 * HOUR_MS });
  expect(await stored()).toHaveLength(1);
  await database.db
    .update(spikes)
    .set({ closedAt: new Date(NOW + 7 * HOUR_MS) })
    .where(eq(spikes.id, second));
  await openSpike({ openedAt: new Date(NOW + 6 * HOUR_MS + 1) });
  await run({ edge, clock: () => NOW + 7 * HOUR_MS });
  expect(await stored()).toHaveLength(2);
});

describe("the platform's failures", () => {
  test.each(FAILURES)(
    "$name: stored, not asked again too early, and asked again in time",
    async (failure) => {
      const { emulator, edge } = await openPlatform(failure.options);
      const { fault, againAfterMs } = failure;
      if (fault !== undefined)
        await breakWith(emulator, { ...fault, operation: "recommend-rule" } as FaultInput);
      await openSpike(failure.spike);
      await run({ edge });

      expect(await stored()).toEqual([expect.objectContaining({ success: false, text: null })]);
      expect((await stored())[0]?.errorKey).toMatch(
        failure.errorKey instanceof RegExp ? failure.errorKey : new RegExp(`^${failure.errorKey}$`),
      );
      const early =
        againAfterMs === null ? 24 * HOUR_MS : fault?.kind === "rate-limit" ? 0 : againAfterMs - 1;
      await run({ edge, clock: () => NOW + early });
      expect(await stored()).toHaveLength(1);
      await run({ edge, clock: () => NOW + (againAfterMs ?? 48 * HOUR_MS) });
      expect(await stored()).toHaveLength(againAfterMs === null ? 1 : 2);
    },
  );

  test("an answer that takes too long is a timeout", async () => {
    const { edge } = await openPlatform({ switches: { adviceLatencyMs: 600_000 } });
    await openSpike();
    await run({ edge, askTimeoutMs: 50 });
    expect(await stored()).toMatchObject([{ success: false, errorKey: "EDGE_TIMEOUT" }]);
  });

  test("a plan limit keeps the other rules of its zone from being asked, and no other zone's", async () => {
    const { edge } = await openPlatform({ switches: { advice: "limit-reached" } });
    await openSpike();
    await run({ edge });
    await openSpike({ ruleId: "941100" });
    await openSpike({ zoneId: 102, ruleId: "941100" });
    await run({ edge, clock: () => NOW + MINUTE_MS });
    expect((await stored()).map(({ zoneId, ruleId }) => [zoneId, ruleId])).toEqual([
      [101, "942100"],
      [102, "941100"],
    ]);
  });
});

test("two replicas ask about a rule once between them", async () => {
  const { emulator, edge } = await openPlatform({ switches: { adviceLatencyMs: 50 } });
  await openSpike();
  await Promise.all(Array.from({ length: 6 }, () => run({ edge })));
  expect([await countAsks(emulator), (await stored()).length]).toEqual([1, 1]);
});

test("the budget holds over all replicas, and the most severe spikes come first", async () => {
  const { emulator, edge } = await openPlatform();
  const rules = ["913100", "920350", "930130", "932100", "933150", "941100", "942200"];
  for (const ruleId of rules) await openSpike({ ruleId });
  await openSpike({ ruleId: "942100", severity: "critical" });
  for (let round = 0; round < 3; round += 1)
    await Promise.all(Array.from({ length: 4 }, () => run({ edge, budgetPerHour: 5 })));
  expect(await countAsks(emulator)).toBe(5);
  expect((await stored()).map(({ ruleId }) => ruleId)).toContain("942100");

  await run({ edge, budgetPerHour: 5, clock: () => NOW + HOUR_MS });
  expect(await stored()).toHaveLength(8);
});

test("an asker that is killed leaves its claim; the rule is asked about again once that has expired", async () => {
  const { edge } = await openPlatform();
  await openSpike();
  const doomed = createDatabase({ url: database.url, max: 3, applicationName: "doomed", onError: () => {} });
  const dying = {
    getRecommendation: async () => {
      await doomed.close();
      throw new Error("killed");
    },
  };
  await expect(run({ edge: dying, database: doomed })).rejects.toThrow("Failed query");
  expect(await stored()).toMatchObject([{ success: false, text: null, errorKey: "ASKING" }]);

  // A replica whose clock is ahead still finds the lease taken, by Postgres's clock.
  await run({ edge, clock: () => NOW + 10 * MINUTE_MS });
  expect(await stored()).toHaveLength(1);
  await database.db.update(leases).set({ expiresAt: sql`now() - interval '1 second'` });
  await run({ edge, clock: () => NOW + MINUTE_MS - 1 });
  expect(await stored()).toHaveLength(1);
  await run({ edge, clock: () => NOW + MINUTE_MS });
  expect(await stored()).toMatchObject([{ errorKey: "ASKING" }, { success: true }]);
});

test("a service that stops in the middle of an ask says nothing about the platform", async () => {
  const { edge } = await openPlatform({ switches: { adviceLatencyMs: 600_000 } });
  await openSpike();
  const stopping = new AbortController();
  const running = run({ edge }, stopping.signal);
  await expect.poll(async () => (await stored()).length).toBe(1);
  stopping.abort(new Error("the service is stopping"));
  await expect(running).rejects.toThrow("the service is stopping");
  expect(await stored()).toMatchObject([{ errorKey: "ASKING" }]);
});
