import { afterAll, beforeAll, expect, test } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { createFractions } from "../../detection/support/histories.ts";
import { draws } from "../../support/sample.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../archive-folder.ts";
import { createDraw, DAYS, drawBody, drawCountedBody, drawEvents } from "./draw.ts";
import { createNaiveSearch } from "./naive-search.ts";
import { expectSame, ZONE } from "./world.ts";

const AT_ONCE = 4;
const draw = createDraw(createFractions(20_260_301));
let database: MigratedDatabase;
let folder: ArchiveFolder;

beforeAll(async () => {
  [database, folder] = await Promise.all([createMigratedDatabase(), openFolder()]);
  await ensurePartitions(database, DAYS);
  await storeEvents(database, ZONE + 1, drawEvents(draw, 300, "other-"), { expectNew: true });
});

afterAll(() => Promise.all([database.drop(), folder.close()]));

/** Asks `count` random questions about these events; returns how many answers the archive had a part in. */
async function askAtRandom(events: readonly WafEvent[], count: number): Promise<number> {
  const naive = createNaiveSearch(events);
  const bodies: object[] = Array.from({ length: count }, () =>
    draw.chance(0.3) ? drawCountedBody(draw, events) : drawBody(draw, events),
  );
  let archived = 0;
  const ask = async () => {
    for (let body = bodies.pop(); body !== undefined; body = bodies.pop()) {
      if ((await expectSame({ queries: database, files: folder.files }, naive, body)) === "archive")
        archived++;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, ask));
  return archived;
}

test("every answer is the naive one's, wherever the border between Postgres and the archive is, also while days move", {
  timeout: 300_000,
}, async () => {
  const events = drawEvents(draw, 1_200, "");
  await storeEvents(database, ZONE, events, { expectNew: true });
  expect(await askAtRandom(events, draws(20, 80))).toBe(0);

  // The file answers for a day, also while Postgres has it.
  await archiveDay(database, folder, DAYS[1], { isKept: true });
  await database.pool.query(
    "update waf_events set country = 'XX' where zone_id = $1 and occurred_at >= $2 and occurred_at < $3",
    [ZONE, DAYS[1], DAYS[2]],
  );
  await archiveDay(database, folder, DAYS[3]);
  expect(await askAtRandom(events, draws(20, 80))).toBeGreaterThan(5);

  const move = async () => {
    await archiveDay(database, folder, DAYS[0]);
    await archiveDay(database, folder, DAYS[2]);
  };
  await Promise.all([move(), askAtRandom(events, draws(15, 60))]);
  await archiveDay(database, folder, DAYS[4]);
  expect(await askAtRandom(events, draws(20, 80))).toBeGreaterThan(12);
});
