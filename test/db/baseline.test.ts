import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { listMigrations, migrate } from "#db/migrate.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { createTestDatabase } from "../support/database.ts";
import { createDatabaseBefore, MIGRATED } from "./before-baseline.ts";
import { storeEvents } from "./new-events.ts";
import { readCatalog } from "./read-catalog.ts";

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

const LEDGER = "drizzle.__drizzle_migrations";

/** Returns the rows of every table that has some, also of the ledger, as they lie in it. */
async function readRows(client: pg.Client): Promise<Record<string, unknown[]>> {
  const { rows: tables } = await client.query<{ name: string }>(
    "select oid::regclass::text as name from pg_class where relkind = 'r' and relnamespace::regnamespace::text in ('public', 'drizzle')",
  );
  const read: Record<string, unknown[]> = {};
  for (const { name } of tables) {
    const { rows } = await client.query<{ row: unknown }>(
      `select to_jsonb(t) as row from ${name} t order by ctid`,
    );
    if (rows.length > 0) read[name] = rows.map(({ row }) => row);
  }
  return read;
}

test("a new database has the catalog of one that the commit before the baseline made in steps", async () => {
  const empty = await createTestDatabase();
  onTestFinished(() => empty.drop());
  await migrate({ url: empty.url });
  const before = await createDatabaseBefore();
  await migrate({ url: before.url });

  const catalog = await readCatalog(await connect(before.url));
  expect(catalog.length).toBeGreaterThan(500);
  expect(await readCatalog(await connect(empty.url))).toEqual(catalog);
});

test("a database of the commit before the baseline keeps every row and takes new events", async () => {
  const { url } = await createDatabaseBefore();
  const client = await connect(url);
  const database = createDatabase({ url, max: 2, applicationName: "test", onError: () => undefined });
  onTestFinished(() => database.close());
  await ensurePartitions(database, ["2026-11-20"]);
  const occurredAt = Date.UTC(2026, 10, 20, 12);
  await storeEvents(database, 101, [makeEvent({ occurredAt, logId: "before" })], { expectNew: true });
  await client.query(`
    insert into alerts (fired_at, kind, fingerprint, transitions) values (now(), 'spike', 'f', '[{}]');
    insert into silences (starts_at, expires_at, matchers, created_by, reason)
      values (now(), now() + interval '1 hour', '[]', 'alice', 'planned')`);
  const { [LEDGER]: ledger = [], ...rows } = await readRows(client);
  expect(Object.keys(rows)).toEqual(
    expect.arrayContaining(["waf_events_20261120", "alert_transitions", "silences"]),
  );
  expect(ledger).toHaveLength(10);

  await migrate({ url });

  // Migrations after the baseline may add columns and rows of the ledger.
  const after = await readRows(client);
  expect(after).toMatchObject(rows);
  expect(after[LEDGER]?.slice(0, 10)).toEqual(ledger);
  expect(after[LEDGER]).toHaveLength(10 + listMigrations().length - 1);
  const later = [makeEvent({ occurredAt: occurredAt + 1_000, logId: "after" })];
  expect(await storeEvents(database, 101, later, { expectNew: true })).toMatchObject({ inserted: 1 });
});

test("a database in which events wait for the pseudonym key is refused, told what to start first, and left as it is", async () => {
  const { url } = await createDatabaseBefore();
  const client = await connect(url);
  await client.query(
    "insert into held_events (occurred_at, zone_id, log_id, route) values (now(), 101, 'held', 'list')",
  );
  const [catalog, rows] = [await readCatalog(client), await readRows(client)];

  await expect(migrate({ url })).rejects.toThrow(
    /events are held back .* start Longwatch 0\.3\.0 of the commit ba571f6e with the key/,
  );
  expect(await readCatalog(client)).toEqual(catalog);
  expect(await readRows(client)).toEqual(rows);
});

test.each([
  ["0.2", MIGRATED.by02],
  ["0.3 that lacks the last migration", MIGRATED.allButOne],
])("a database of version %s is refused, told what to start first, and left as it is", async (_, through) => {
  const { url } = await createDatabaseBefore(through);
  const client = await connect(url);
  const [catalog, rows] = [await readCatalog(client), await readRows(client)];

  await expect(migrate({ url })).rejects.toMatchObject({
    code: "SCHEMA_TOO_OLD",
    message: expect.stringContaining("start Longwatch 0.3.0 of the commit ba571f6e once"),
  });
  expect(await readCatalog(client)).toEqual(catalog);
  expect(await readRows(client)).toEqual(rows);
});
