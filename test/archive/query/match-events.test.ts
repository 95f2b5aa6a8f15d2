import { afterAll, beforeAll, expect, test } from "vitest";
import { createMatcher, textsOf } from "#archive/rules/query/custom-conditions.ts";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { searchRows } from "#archive/search/find-rows.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import type { Filter } from "#model/fields.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { createFractions } from "../../detection/support/histories.ts";
import { draws } from "../../support/sample.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../archive-folder.ts";
import { createDraw, DAYS, drawBody, drawEvents, END, FIRST_DAY } from "./draw.ts";
import { mustRead, ZONE } from "./world.ts";

const draw = createDraw(createFractions(20_261_128));
const URLS = [
  "https://shop.example/admin/login?next=/x",
  "https://SHOP.example:8443/admin",
  "//shop.example/admin#top",
  "/admin",
  "https://user@[2001:db8::1]:443/",
  "https://shop.example",
  "https://shop.exámple/ADMIN/ſtraße",
];
const PARTS = ["/admin", "/ADMIN", "/", "shop.example", "admin*", "*.example", "[2001:db8::1]", "ß", "*"];
let database: MigratedDatabase;
let folder: ArchiveFolder;
let events: WafEvent[];

beforeAll(async () => {
  [database, folder] = await Promise.all([createMigratedDatabase(), openFolder()]);
  await ensurePartitions(database, DAYS);
  events = drawEvents(draw, 900, "").map((one) => (draw.chance(0.5) ? { ...one, url: draw.one(URLS) } : one));
  await storeEvents(database, ZONE, events, { expectNew: true });
  for (const day of [DAYS[0], DAYS[2]]) await archiveDay(database, folder, day);
});

afterAll(() => Promise.all([database.drop(), folder.close()]));

function drawPart(): Filter {
  const op = draw.one(["eq", "in", "contains", "wildcard"] as const);
  return { field: draw.one(["host", "path"] as const), op, value: [draw.one(PARTS), draw.one(PARTS)] };
}

/** A search of the whole window for rows, whose filters may be about parts of the URL, or exclude. */
function drawPlan() {
  const { query, filters } = mustRead(drawBody(draw, events));
  const more = draw.chance(0.5) ? [drawPart()] : [];
  const turned = [...filters, ...more].map((one) =>
    draw.chance(0.25) ? { ...one, not: true as const } : one,
  );
  const flat = { groupBy: [], buckets: 0, page: 0, pageSize: 1_000 };
  return planSearch({ ...flat, from: FIRST_DAY, to: END, query, filters: turned });
}

test("the matcher finds the events that the search finds, in Postgres and in files, alone and among other searches", {
  timeout: 120_000,
}, async () => {
  const plans = Array.from({ length: draws(60, 600) }, drawPlan);
  const matches = createMatcher(plans.map(({ clauses }, key) => ({ key, clauses })));
  const found = plans.map(() => [] as string[]);
  for (const event of events)
    for (const key of matches(textsOf({ zone: String(ZONE), log_id: event.logId, request_id: "", ...event })))
      found[key]?.push(event.logId);
  const { signal } = new AbortController();
  let selective = 0;
  for (const [key, plan] of plans.entries()) {
    const { rows } = await searchRows({ queries: database, files: folder.files }, ZONE, plan, signal);
    const wanted = rows.map(({ logId }) => logId).sort();
    if (wanted.length > 0 && wanted.length < events.length) selective += 1;
    const asked = JSON.stringify(plan.clauses);
    expect({ asked, found: found[key]?.toSorted() }).toEqual({ asked, found: wanted });
  }
  // Other questions find nothing or everything, and would hide a mistake.
  expect(selective).toBeGreaterThan(plans.length / 4);
});
