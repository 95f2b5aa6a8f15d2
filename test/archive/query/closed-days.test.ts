import { expect, onTestFinished, test } from "vitest";
import { createDatabase, type Database } from "../../../db/client.ts";
import { ensurePartitions } from "../../../db/postgres/partitions.ts";
import { searchGroups } from "../../../db/search/search-groups.ts";
import { memoryOf } from "../../../db/search/search-memory.ts";
import { locatePage } from "../../../db/search/search-place.ts";
import { searchRows } from "../../../db/search/search-rows.ts";
import { readSegments, readTimes } from "../../../db/search/search-segments.ts";
import { inSearchTransaction } from "../../../db/search/search-transaction.ts";
import { createBuildCubesJob } from "../../../jobs/archive/build-cubes.ts";
import { createCloseDaysJob } from "../../../jobs/archive/close-days.ts";
import { createManagePartitionsJob } from "../../../jobs/service/manage-partitions.ts";
import { planSearch } from "../../../src/archive/query/plan-search.ts";
import { DAY_MS } from "../../../src/lib/units.ts";
import type { WafEvent } from "../../../src/model/waf-event.ts";
import type { AnyJob } from "../../../src/queue/define-job.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { silent } from "../../ingest/ingest-support.ts";
import { DAYS, END, FIRST_DAY } from "./draw.ts";
import { mustRead, ZONE } from "./world.ts";

const NOW = END + 4 * DAY_MS;
const WHOLE = { from: FIRST_DAY, to: END };

const run = (job: AnyJob) => job.run({} as never, new AbortController().signal);
const closeDays = (database: Database, now = NOW) =>
  run(createCloseDaysJob({ database, clock: () => now, log: silent }));
const buildCubes = (database: Database) => run(createBuildCubesJob({ database, log: silent }));

async function openArchive(events: readonly WafEvent[]): Promise<MigratedDatabase> {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  await ensurePartitions(database, DAYS);
  await storeEvents(database, ZONE, events, { expectNew: true });
  return database;
}

function someEvents(count: number): WafEvent[] {
  return Array.from({ length: count }, (_, index) =>
    makeEvent({
      occurredAt: FIRST_DAY + Math.floor((index * (END - FIRST_DAY)) / count),
      logId: `e${index}`,
      ruleId: `94210${index % 3}`,
      country: ["DE", "FR"][index % 2] ?? null,
      ip: `203.0.113.${index % 250}`,
      url: `https://example.com/${index}/path`,
    }),
  );
}

function byRule(database: Database) {
  return searchGroups(database, ZONE, planSearch(mustRead({ ...WHOLE, groupBy: ["ruleId"], buckets: 10 })));
}

async function readIndexes({ pool }: Database): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(`
    select c.relname::text as name from pg_index x join pg_class c on c.oid = x.indexrelid
    join pg_class t on t.oid = x.indrelid where t.relname like 'waf_events_2026%' and x.indisvalid order by 1`);
  return rows.map(({ name }) => name);
}

const countBuilt = async ({ pool }: Database) => {
  const { rows } = await pool.query<{ built: number }>(
    "select count(*) filter (where built_marks = marks)::integer as built from cube_days",
  );
  return rows[0]?.built;
};

test("a day is closed once, however many replicas try, and only when it can no longer grow", async () => {
  const database = await openArchive(someEvents(50));
  await closeDays(database, FIRST_DAY + 4 * DAY_MS - 1);
  expect((await readIndexes(database)).filter((name) => name.endsWith("_texts"))).toEqual([]);

  await Promise.all([closeDays(database), closeDays(database), closeDays(database)]);
  await closeDays(database);
  for (const suffix of ["ip", "ja4", "network", "texts"]) {
    const names = (await readIndexes(database)).filter((name) => name.endsWith(`_${suffix}`));
    expect(names).toEqual(DAYS.map((day) => `waf_events_${day.replaceAll("-", "")}_${suffix}`));
  }
});

test("a day all of whose hours are decided is closed before the platform forgets it", async () => {
  const database = await openArchive(someEvents(50));
  const now = FIRST_DAY + DAY_MS + 2 * 3_600_000;
  await closeDays(database, now);
  expect((await readIndexes(database)).some((name) => name.endsWith("_ip"))).toBe(false);
  await database.pool.query("update coverage_windows set state = 'gap', gap_reason = 'test'");
  await closeDays(database, now);
  const closed = (await readIndexes(database)).filter((name) => name.endsWith("_ip"));
  expect(closed).toEqual(["waf_events_20260301_ip"]);
});

test("an index that a killed build left half made is made anew", async () => {
  const database = await openArchive(someEvents(50));
  await database.pool.query("create index waf_events_20260301_ip on waf_events_20260301 (zone_id)");
  await database.pool.query(
    "update pg_index set indisvalid = false where indexrelid = 'waf_events_20260301_ip'::regclass",
  );
  await closeDays(database);
  expect(await readIndexes(database)).toContain("waf_events_20260301_ip");
  const { rows } = await database.pool.query<{ is_made: boolean }>(
    "select pg_get_indexdef('waf_events_20260301_ip'::regclass) like '%ip COLLATE%' as is_made",
  );
  expect(rows).toEqual([{ is_made: true }]);
});

test("counts killed in the middle leave nothing, and two runs at once end at the same counts", async () => {
  const database = await openArchive(someEvents(60));
  await closeDays(database);
  const doomed = createDatabase({
    url: database.url,
    max: 1,
    applicationName: "doomed",
    onError: () => undefined,
  });
  onTestFinished(() => doomed.close());
  const holder = await database.pool.connect();
  await holder.query("begin; lock table day_tallies in access exclusive mode");
  const killed = buildCubes(doomed).then(
    () => "finished",
    () => "failed",
  );
  await expect
    .poll(async () => {
      const { rows } = await database.pool.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'doomed' and wait_event_type = 'Lock'",
      );
      return rows.length;
    })
    .toBe(1);
  expect(await killed).toBe("failed");
  await holder.query("rollback");
  holder.release();
  expect(await countBuilt(database)).toBe(0);

  const before = await byRule(database);
  await Promise.all([buildCubes(database), buildCubes(database)]);
  expect(await countBuilt(database)).toBe(DAYS.length);
  const after = await byRule(database);
  expect(before.source).toBe("events");
  expect(after).toEqual({ ...before, source: "roll-up" });
});

test("a late event is seen from its commit on, by searches and by the next count", async () => {
  const events = someEvents(60);
  const database = await openArchive(events);
  await closeDays(database);
  await buildCubes(database);
  const late = makeEvent({
    occurredAt: FIRST_DAY + DAY_MS + 5,
    logId: "late",
    ruleId: "942100",
    country: null,
  });
  await storeEvents(database, ZONE, [late], { expectNew: true });
  expect(await countBuilt(database)).toBe(DAYS.length - 1);
  const countOf = async () =>
    (await byRule(database)).groups.find(({ key }) => key["ruleId"] === "942100")?.count;
  expect(await countOf()).toBe(21);
  await buildCubes(database);
  expect(await countOf()).toBe(21);

  // It learns its country: no count of events changes, but what the groups say of them does.
  await storeEvents(database, ZONE, [{ ...late, country: "XX" }], { expectNew: false });
  expect(await countBuilt(database)).toBe(DAYS.length - 1);
  await database.pool.query("delete from waf_events where log_id = 'late'");
  expect(await countOf()).toBe(20);
  await buildCubes(database);
  expect(await countOf()).toBe(20);
  expect(await searchRows(database, ZONE, planSearch(mustRead(WHOLE)))).toMatchObject({ total: 60 });
});

test("days past retention are gone from every answer, also before their counts are", async () => {
  const database = await openArchive(someEvents(100));
  await closeDays(database);
  await buildCubes(database);
  await database.pool.query("drop table waf_events_20260301, waf_events_20260302");
  expect((await byRule(database)).groups.reduce((sum, { count }) => sum + count, 0)).toBe(60);
  expect(await searchRows(database, ZONE, planSearch(mustRead(WHOLE)))).toMatchObject({ total: 60 });

  const job = createManagePartitionsJob({
    database,
    clock: () => END,
    log: silent,
    retention: { rawDays: 3, ipDays: 3, eventDays: 3, rollUpDays: 3 },
  });
  await run(job);
  const { rows } = await database.pool.query<{ days: number }>(
    "select count(distinct day)::integer as days from day_tallies",
  );
  expect(rows).toEqual([{ days: 3 }]);
});

test("a page in the middle of many events is found by counts, not by passing over them", async () => {
  const database = await openArchive(someEvents(6_000));
  await closeDays(database);
  await buildCubes(database);
  const plan = planSearch(mustRead({ ...WHOLE, page: 300, pageSize: 10 }));
  const { rows } = await searchRows(database, ZONE, plan);
  expect(rows.map(({ logId }) => logId)).toEqual(
    Array.from({ length: 10 }, (_, index) => `e${2_999 - index}`),
  );

  // Events come one by one: none is passed over.
  const offset = 3_000;
  const memory = memoryOf(database);
  const place = await inSearchTransaction(database, async (_, client) =>
    locatePage(await readSegments(client, memory, ZONE, plan), { offset, limit: 10 }, (counted) =>
      readTimes(client, memory, counted),
    ),
  );
  expect(place.skip).toBe(0);
  expect(place.to - place.from).toBeLessThanOrEqual(2 * DAY_MS);
});
