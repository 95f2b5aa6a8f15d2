import { expect, onTestFinished, test } from "vitest";
import { createDatabase, type Database } from "#db/client.ts";
import { archiveCommand } from "#faces/cli/archive/archive.ts";
import { migrateCommand } from "#faces/cli/migrate.ts";
import { searchCommand } from "#faces/cli/search/search.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { createAlertWorld } from "../alerting/alert-world.ts";
import { runStoreCommand } from "../cli/run-store-command.ts";
import { createDeliverWorld, startReceiver } from "../delivery/deliver-world.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { storeEvents } from "./new-events.ts";
import { createDatabase02, fillAs02, NOW_02 } from "./version-02.ts";

const ZONE = 101;

/** The tables and sequences of a database with their columns. */
type Shape = readonly { readonly name: string; readonly columns: string }[];

/** The column `companions` of spikes is dropped: incidents replace what it counted. */
async function readShape({ pool }: Database): Promise<Shape> {
  const { rows } = await pool.query<Shape[number]>(
    `select relname as name, (select string_agg(quote_ident(attname), ', ') from pg_attribute
       where attrelid = c.oid and attnum > 0 and not attisdropped and attname <> 'companions') as columns
     from pg_class c where relnamespace = 'public'::regnamespace and relkind in ('r', 'S') order by 1`,
  );
  return rows;
}

/** Returns every row as JSON text. A later migration may add a column or a table: it is in no shape that was read before. */
async function readRows({ pool }: Database, shape: Shape): Promise<Record<string, string[]>> {
  const read: Record<string, string[]> = {};
  for (const { name, columns } of shape) {
    const { rows } = await pool.query<{ row: string }>(
      `select to_jsonb(t)::text as row from (select ${columns} from ${name}) t order by 1`,
    );
    read[name] = rows.map(({ row }) => row);
  }
  return read;
}

test("a database of version 0.2 is migrated without a change to a row, and the jobs go on", async () => {
  const { url } = await createDatabase02();
  const folder = makeTemporaryFolder("archive");
  await fillAs02(url, folder);
  const database = createDatabase({ url, max: 4, applicationName: "test", onError: () => undefined });
  onTestFinished(() => database.close());
  const settings = { DATABASE_URL: url, LONGWATCH_ARCHIVE_DIR: folder };
  const run = (create: Parameters<typeof runStoreCommand>[0], args: string[]) =>
    runStoreCommand(create, settings, args, { now: NOW_02 + 2 * HOUR_MS });

  const shape = await readShape(database);
  const before = await readRows(database, shape);
  expect(Object.keys(before).length).toBeGreaterThan(50);
  // Only the partitions of the archived day are empty.
  const empty = Object.keys(before).filter((name) => before[name]?.length === 0);
  expect(empty).toEqual(["raw_blocks_20261119", "waf_events_20261119"]);
  const migrated = { code: 0, err: "", out: "The tables are of this version.\n" };
  expect(await run(migrateCommand, [])).toEqual(migrated);
  expect(await readRows(database, shape)).toEqual(before);

  // The messages that one channel had refused are delivered.
  const receiver = await startReceiver();
  onTestFinished(() => receiver.close());
  const deliveries = createDeliverWorld(database, receiver);
  await deliveries.run(["chat", "pager"]);
  expect(receiver.heard().sort()).toEqual(["chat first", "chat first", "chat resolved"]);

  // The end of its spike resolves the alert. A silence of 0.2 still mutes the other open one.
  const alerts = createAlertWorld(database);
  expect((await alerts.alerts()).map(({ ruleId, state }) => `${ruleId} ${state}`)).toEqual([
    "913100 firing",
    "941100 resolved",
    "942100 firing",
  ]);
  for (const { id, closedAt } of await alerts.spikes())
    if (closedAt === null) await alerts.closeSpike(id, 20);
  await alerts.runAt(21);
  expect((await alerts.alerts()).map(({ state }) => state)).toEqual(["resolved", "resolved", "resolved"]);
  receiver.reset();
  await deliveries.run(["chat", "pager"]);
  expect(receiver.heard().sort()).toEqual(["chat resolved", "pager resolved"]);
  expect(receiver.received[0]?.message.ruleId).toBe("942100");

  // Days in the archive and days in Postgres are searched as one, and take new events.
  const event = makeEvent({ occurredAt: NOW_02 - 1_000, logId: "after the upgrade" });
  expect(await storeEvents(database, ZONE, [event], { expectNew: true })).toMatchObject({ inserted: 1 });
  const { rows } = await database.pool.query<{ events: number }>(
    `select (select count(*) from waf_events)::integer
       + (select sum(rows) from archive_files where kind = 'events')::integer as events`,
  );
  const from = new Date(NOW_02 - 3 * DAY_MS).toISOString();
  const found = await run(searchCommand, ["--zone", "101", "--from", from, "--json", "--page-all"]);
  expect(found).toMatchObject({ code: 0, err: "" });
  expect(found.out.match(/"logId":/g)).toHaveLength(rows[0]?.events ?? -1);
  expect(await run(archiveCommand, ["verify"])).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^1 day, 2 files, .* nothing differs\n$/),
  });
});
