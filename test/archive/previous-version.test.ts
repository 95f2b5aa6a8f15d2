import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "#db/client.ts";
import { migrate } from "#db/migrate.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { storeEvents } from "../db/new-events.ts";
import { createDatabase02, migrateTo02 } from "../db/version-02.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { archiveDay, openTestFolder } from "./archive-folder.ts";
import { createNaiveSearch } from "./query/naive-search.ts";
import { expectSame, ZONE } from "./query/world.ts";

const DAY = "2026-03-01";
const FROM = Date.parse(`${DAY}T00:00:00Z`);
/** The last migration of version 0.2 before archive days. */
const LAST_BEFORE = 14;

test("a day that the version before has closed is searched in Postgres, and then archived", async () => {
  const { url } = await createDatabase02(LAST_BEFORE);
  const database = createDatabase({ url, max: 4, applicationName: "test", onError: () => undefined });
  onTestFinished(() => database.close());
  await ensurePartitions(database, [DAY]);
  await database.pool.query(`
    create extension if not exists pg_trgm;
    create index waf_events_20260301_ip on waf_events_20260301 (zone_id, ip collate "C", occurred_at);
    create index waf_events_20260301_texts on waf_events_20260301 using gin (lower(url collate "C") gin_trgm_ops);
    create trigger waf_events_mark_cube_day after insert or delete or update of zone_id, occurred_at, feature, rule_id, asn,
      country, action on waf_events_20260301 for each row execute function mark_cube_day();
    insert into cube_days (zone_id, day) values (${ZONE}, '${DAY}')`);

  await migrateTo02(url);
  await migrate({ url });
  const events = Array.from({ length: 50 }, (_, index) =>
    makeEvent({
      occurredAt: FROM + index * 1_000,
      logId: `e${index}`,
      country: index % 3 === 0 ? "DE" : "FR",
    }),
  );
  await storeEvents(database, ZONE, events, { expectNew: true });
  const folder = await openTestFolder();
  const deps = { queries: database, files: folder.files };
  const naive = createNaiveSearch(events);
  const ask = async () => {
    const window = { from: FROM, to: FROM + 40_000 };
    await expectSame(deps, naive, { ...window, query: "e" });
    return expectSame(deps, naive, { ...window, groupBy: ["country"], buckets: 4 });
  };
  expect(await ask()).toBe("events");
  await archiveDay(database, folder, DAY);
  expect(await ask()).toBe("archive");
});
