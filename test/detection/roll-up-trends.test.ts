import { expect, onTestFinished, test } from "vitest";
import type { Database } from "#db/client.ts";
import { compareBuckets } from "#db/detection/compare-buckets.ts";
import { rollUpBatch } from "#db/detection/roll-up.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { readSqlState } from "#lib/errors.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { WafEvent } from "#model/waf-event.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { sample } from "../support/sample.ts";
import { naiveBuckets, naivePeaks, storedBuckets, storedPeaks } from "./naive-trends.ts";
import { createFractions } from "./support/histories.ts";
import {
  connectAs,
  countStale,
  createRollUp,
  makeEvent,
  openTrendDatabase,
  storeAll,
  waitingBackend,
  ZONE,
} from "./trend-support.ts";

const DAYS = ["2026-11-19", "2026-11-20"];
const MIDNIGHT = Date.UTC(2026, 10, 20);
const RANGE = { from: new Date(MIDNIGHT - 24 * HOUR_MS), to: new Date(MIDNIGHT + 24 * HOUR_MS) };

async function expectExact(database: MigratedDatabase): Promise<void> {
  expect(await countStale(database)).toBe(0);
  expect(await compareBuckets(database.db, RANGE)).toEqual([]);
  expect(await storedBuckets(database)).toEqual(await naiveBuckets(database));
  expect(await storedPeaks(database)).toEqual(await naivePeaks(database));
}

test.each(sample([1, 2], (seed) => seed === 2))(
  "writers, two roll-ups and killed backends leave every bucket and peak as its events say (seed %d)",
  async (seed) => {
    const database = await openTrendDatabase(DAYS);
    const fraction = createFractions(seed);
    const doomed = [connectAs("doomed", database), connectAs("doomed", database)];
    const state = { isWriting: true, kills: 0 };
    onTestFinished(() => {
      state.isWriting = false;
    });

    const roll = async (connection: Database) => {
      const run = createRollUp(connection, { batch: 7 });
      while (state.isWriting) await run().catch(ignoreKill);
    };
    // Both routes show an event, one of them without its rule or action: half of the pages move counts about.
    const write = async (writer: number) => {
      for (let page = 0; state.isWriting && (page < 25 || state.kills < 4); page += 1) {
        const events = drawPage(fraction, writer * 20 + (page % 20));
        await storeAll(database, events, { expectNew: fraction() < 0.5 });
      }
    };
    const kill = async () => {
      while (state.isWriting) {
        const { rowCount } = await database.pool.query(
          `select pg_terminate_backend(pid) from pg_stat_activity
           where datname = current_database() and application_name = 'doomed' and backend_xid is not null limit 1`,
        );
        state.kills += rowCount ?? 0;
      }
    };

    const rolled = Promise.all([...doomed.map(roll), kill()]);
    const written = Promise.all([0, 1, 2, 3].map(write)).finally(() => {
      state.isWriting = false;
    });
    await Promise.all([rolled, written]);
    await createRollUp(database)();

    await expectExact(database);
    expect(state.kills).toBeGreaterThanOrEqual(4);
  },
);

/** A killed backend shows as its last words or as a socket that is gone; anything else fails the test. */
function ignoreKill(thrown: unknown): void {
  const state = readSqlState(thrown);
  const text = thrown instanceof Error ? `${thrown.message} ${String(thrown.cause)}` : "";
  const isKill = state === "57P01" || (state === null && /connection|terminat|ECONN|EPIPE/i.test(text));
  if (!isKill) throw thrown;
}

/** A page that another pass may show again: the same times and ids, but what is known of each differs. */
function drawPage(fraction: () => number, number: number): WafEvent[] {
  const fixed = createFractions(number);
  return Array.from({ length: 40 }, (_, i) => {
    const occurredAt = MIDNIGHT + Math.floor((fixed() - 0.5) * 4 * HOUR_MS * fixed());
    const rule = ["", "942100", "941100", "913100"][Math.floor(fixed() * 4)] ?? "";
    const action = ["Blocked", "log", "CHALLENGE", "allow"][Math.floor(fixed() * 4)] ?? "";
    const isBare = fraction() < 0.5;
    return makeEvent({
      occurredAt,
      logId: `${number}/${i}`,
      ruleId: isBare ? null : rule,
      action: fraction() < 0.3 ? null : action,
    });
  });
}

/** Holds the bucket that a roll-up of the minute must write, so that it stops in the middle of its transaction. */
async function holdBucket(database: MigratedDatabase, minute: number) {
  const client = await database.pool.connect();
  onTestFinished(() => client.release());
  await client.query("begin");
  const { rowCount } = await client.query(
    "select from rule_buckets where zone_id = $1 and starts_at = $2 and width = 60 for update",
    [ZONE, new Date(minute)],
  );
  expect(rowCount).toBe(1);
  return async () => void (await client.query("rollback"));
}

test("a roll-up killed in the middle leaves no trace, and the next one does its work", async () => {
  const database = await openTrendDatabase(DAYS);
  const doomed = connectAs("doomed", database);
  const rollUp = createRollUp(database);
  await storeAll(database, [makeEvent({ occurredAt: MIDNIGHT, logId: "a" })]);
  await rollUp();
  await storeAll(database, [
    makeEvent({ occurredAt: MIDNIGHT + 1, logId: "b" }),
    makeEvent({ occurredAt: MIDNIGHT - 1, logId: "c" }),
  ]);
  const before = await storedBuckets(database);

  const release = await holdBucket(database, MIDNIGHT);
  const killed = createRollUp(doomed)().then(
    () => "finished",
    () => "failed",
  );
  await database.pool.query("select pg_terminate_backend($1)", [await waitingBackend(database, "doomed")]);
  expect(await killed).toBe("failed");
  await release();

  expect(await storedBuckets(database)).toEqual(before);
  expect(await countStale(database)).toBe(2);
  await rollUp();
  await expectExact(database);
});

test("a roll-up leaves a taken zone to its holder, which counts what was marked meanwhile", async () => {
  const database = await openTrendDatabase(DAYS);
  const rollUp = createRollUp(database);
  await storeAll(database, [makeEvent({ occurredAt: MIDNIGHT, logId: "a" })]);
  await rollUp();
  await storeAll(database, [makeEvent({ occurredAt: MIDNIGHT + 1, logId: "b" })]);
  const release = await holdBucket(database, MIDNIGHT);
  const holder = createRollUp(connectAs("holder", database))();
  await waitingBackend(database, "holder");

  // A new minute, and the very one that the holder has read already.
  await storeAll(database, [makeEvent({ occurredAt: MIDNIGHT + HOUR_MS, logId: "c" })]);
  await storeAll(database, [makeEvent({ occurredAt: MIDNIGHT + 2, logId: "d" })]);
  await storeAll(database, [makeEvent({ occurredAt: MIDNIGHT, logId: "e" })], { zoneId: 102 });
  await rollUp();
  expect(await countStale(database)).toBe(2);

  await release();
  await holder;
  await expectExact(database);
});

test("a mark that a writer holds outlives the roll-up and is counted after the commit", async () => {
  const database = await openTrendDatabase(DAYS);
  await storeAll(database, [makeEvent({ occurredAt: MIDNIGHT, logId: "a" })]);
  const writer = await database.pool.connect();
  onTestFinished(() => writer.release());
  await writer.query("begin");
  await writer.query("update dirty_buckets set marks = marks + 1");

  await createRollUp(database)();
  expect(await countStale(database)).toBe(1);
  await writer.query("commit");

  await createRollUp(database)();
  await expectExact(database);
});

test("the cost of a batch follows its own minutes where the planner knows nothing of the tables", async () => {
  const database = await openTrendDatabase(DAYS);
  const minutes = 2_000;
  const events = Array.from({ length: 3 * minutes }, (_, i) =>
    makeEvent({ occurredAt: MIDNIGHT + (i % 1_000) * MINUTE_MS, logId: `${i}`, ruleId: `${i % 6_000}` }),
  );
  await storeAll(database, events);
  const batch = () => inTransaction(database, ({ tx }) => rollUpBatch(tx, { zoneId: ZONE, limit: minutes }));
  await batch();
  await batch();

  const plans: Plan[] = [];
  await inTransaction(database, async ({ tx, client }) => {
    await client.query("load 'auto_explain'; set local auto_explain.log_min_duration = 0");
    await client.query("set local auto_explain.log_analyze = on; set local auto_explain.log_format = json");
    await client.query("set local client_min_messages = log");
    const listen = ({ message }: { message?: string | undefined }) => {
      const plan = /\{.*\}/s.exec(message ?? "")?.[0];
      if (plan !== undefined) plans.push((JSON.parse(plan) as { Plan: Plan }).Plan);
    };
    client.on("notice", listen);
    await rollUpBatch(tx, { zoneId: ZONE, limit: minutes });
    client.off("notice", listen);
  });

  expect(plans.length).toBeGreaterThanOrEqual(6);
  const touched = plans.map(rowsTouched);
  // Comparing the batch with all that is there would be minutes * 3 * minutes.
  expect(Math.max(...touched)).toBeLessThan(150 * minutes);
});

interface Plan {
  readonly "Actual Rows": number;
  readonly "Actual Loops": number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Join Filter"?: number;
  readonly Plans?: readonly Plan[];
}

function rowsTouched(plan: Plan): number {
  const removed = (plan["Rows Removed by Filter"] ?? 0) + (plan["Rows Removed by Join Filter"] ?? 0);
  const own = (plan["Actual Rows"] + removed) * plan["Actual Loops"];
  return own + (plan.Plans ?? []).reduce((sum, below) => sum + rowsTouched(below), 0);
}
