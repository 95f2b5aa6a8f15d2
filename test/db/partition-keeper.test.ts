import { afterEach, beforeEach, expect, test } from "vitest";
import { createPartitionKeeper, dropPartitionsBefore } from "#db/postgres/partitions.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";

let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
});

afterEach(() => database.drop());

const write = (at: string) => () =>
  database.pool.query(
    "insert into waf_events (zone_id, occurred_at, log_id, route) values (7, $1::text::timestamptz, $1, 'list')",
    [at],
  );

async function partitions() {
  const { rows } = await database.pool.query<{ name: string }>(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'waf_events'::regclass order by 1",
  );
  return rows.map(({ name }) => name);
}

test("the first event of a day finds its partition, made on demand", async () => {
  const keeper = createPartitionKeeper(database);
  await keeper.withDays(["2026-11-20"], write("2026-11-20T12:00Z"));
  await keeper.withDays(["2026-11-20", "2026-11-21"], write("2026-11-21T12:00Z"));
  expect(await partitions()).toEqual(["waf_events_20261120", "waf_events_20261121"]);
});

test("ten writers of two replicas that need the same new days all write", async () => {
  const [one, other] = [createPartitionKeeper(database), createPartitionKeeper(database)];
  const days = ["2026-11-19", "2026-11-20"];
  await Promise.all(
    Array.from({ length: 10 }, (_, n) =>
      (n % 2 === 0 ? one : other).withDays(days, write(`2026-11-${n < 5 ? 19 : 20}T00:00:0${n}Z`)),
    ),
  );
  const { rows } = await database.pool.query("select count(*)::integer as n from waf_events");
  expect(rows).toEqual([{ n: 10 }]);
  expect(await partitions()).toEqual(["waf_events_20261119", "waf_events_20261120"]);
});

test("a day it has seen to costs no further look at the catalogue", async () => {
  const keeper = createPartitionKeeper(database);
  await keeper.withDays(["2026-11-20"], async () => undefined);
  let queries = 0;
  const counted = {
    ...database,
    get db() {
      queries++;
      return database.db;
    },
    get pool() {
      queries++;
      return database.pool;
    },
  };
  const watched = createPartitionKeeper(counted);
  await watched.withDays(["2026-11-20"], async () => undefined);
  const once = queries;
  expect(once).toBeGreaterThan(0);
  await watched.withDays(["2026-11-20"], async () => undefined);
  expect(queries).toBe(once);
});

test("a day that retention has taken meanwhile is made again and the writer runs once more", async () => {
  const keeper = createPartitionKeeper(database);
  await keeper.withDays(["2026-11-20"], write("2026-11-20T12:00Z"));
  await dropPartitionsBefore(database, "waf_events", "2026-11-21");
  let runs = 0;
  await keeper.withDays(["2026-11-20"], () => {
    runs++;
    return write("2026-11-20T13:00Z")();
  });
  expect(runs).toBe(2);
  expect(await partitions()).toEqual(["waf_events_20261120"]);
});

test("a writer whose event lies outside the days it named fails after one more try, and makes no partition", async () => {
  const keeper = createPartitionKeeper(database);
  let runs = 0;
  const writing = keeper.withDays(["2026-11-20"], () => {
    runs++;
    return write("2031-01-01T00:00Z")();
  });
  await expect(writing).rejects.toMatchObject({ code: "23514" });
  expect(runs).toBe(2);
  expect(await partitions()).toEqual(["waf_events_20261120"]);
});

test("any other failure is the writer's own and is not repeated", async () => {
  const keeper = createPartitionKeeper(database);
  let runs = 0;
  const writing = keeper.withDays(["2026-11-20"], async () => {
    runs++;
    throw new Error("the writer's own");
  });
  await expect(writing).rejects.toThrow("the writer's own");
  expect(runs).toBe(1);
});

test("a day whose partition could not be made is tried again by the next writer", async () => {
  const keeper = createPartitionKeeper(database);
  await expect(keeper.withDays(["2026-02-30"], async () => "ran")).rejects.toThrow(RangeError);
  await database.pool.query("alter table waf_events rename to waf_events_away");
  await expect(keeper.withDays(["2026-11-20"], async () => "ran")).rejects.toThrow("waf_events");
  await database.pool.query("alter table waf_events_away rename to waf_events");
  await keeper.withDays(["2026-11-20"], write("2026-11-20T12:00Z"));
  expect(await partitions()).toEqual(["waf_events_20261120"]);
});
