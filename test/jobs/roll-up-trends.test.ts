import { expect, test } from "vitest";
import { compareBuckets } from "../../db/queries/roll-up.ts";
import { createRollUpTrendsJob } from "../../jobs/roll-up-trends.ts";
import { HOUR_MS, NOW, openEmulator } from "../emulator/support.ts";
import { openIngest, silent } from "./ingest-support.ts";

const RANGE = { from: new Date(NOW - 72 * HOUR_MS), to: new Date(NOW) };

test("after a roll-up every bucket of every width is what a recount of the events says", async () => {
  const emulator = await openEmulator({ historyHours: 30, eventsPerSecond: 0.05 });
  const ingest = await openIngest(emulator);
  const { database } = ingest;
  await ingest.poll();
  expect(await compareBuckets(database.db, RANGE)).not.toEqual([]);

  const job = createRollUpTrendsJob({ database, log: silent, batch: 500 });
  await job.run({} as never, new AbortController().signal);

  expect(await compareBuckets(database.db, RANGE)).toEqual([]);
  const { rows } = await database.pool.query("select count(*)::integer as n from dirty_buckets");
  expect(rows).toEqual([{ n: 0 }]);
});
