import { beforeEach, expect, test } from "vitest";
import { readCondition } from "#archive/rules/query/custom-conditions.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { auditEntries } from "#db/schema/people.ts";
import { createRefuseCostly } from "#faces/http/limits/refuse.ts";
import { createJudgeConditionsJob } from "#jobs/detection/judge-conditions.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { CustomCondition } from "#model/custom-condition.ts";
import { toDay } from "#model/horizon.ts";
import { NOW } from "#test/alerts/support.ts";
import { createRollUp, makeEvent, runJob, storeAll } from "#test/detection/trend-support.ts";
import { silent } from "#test/ingest/ingest-support.ts";
import { SERVICE } from "../default-service.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const PATH = "/api/v1/conditions";
const ADMIN = ["path:wildcard:/admin*", "country:not-eq:NL"];

interface Tested {
  readonly times: number;
  readonly events: number;
  readonly latest: readonly { zone: number; from: string; to: string | null; peak: number }[];
}
interface Refused {
  readonly mistakes: readonly { field: string; value?: string; rule: string }[];
}

/** Events in the hours before now, an address each, of which some ask for /admin from abroad. */
const HOURS = [70, 69, 40, 39, 2, 0];
beforeEach(async () => {
  const database = world.database();
  await database.pool.query(
    "truncate custom_conditions, waf_events, spikes, coverage_windows, changed_minutes cascade",
  );
  await ensurePartitions(
    database,
    [0, 1, 2, 3].map((days) => toDay(NOW - days * DAY_MS)),
  );
  const events = HOURS.flatMap((hours, index) =>
    Array.from({ length: 4 }, (_, i) =>
      makeEvent({
        occurredAt: NOW - hours * HOUR_MS - (i + 1) * MINUTE_MS,
        logId: `${index}/${i}`,
        ip: `203.0.113.${i < 2 ? index : 100 + i}`,
        url: i < 3 ? "https://shop.example/admin/x" : "https://shop.example/",
        country: i === 0 ? "NL" : "DE",
      }),
    ),
  );
  await storeAll(database, events);
  await createRollUp(database)();
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, searched_through, state, stored_count)
     select 101, to_timestamp(h * 3600), to_timestamp(h * 3600 + 3600), 'open', 0 from generate_series($1::integer - 100, $1::integer) h
     on conflict (zone_id, starts_at) do update set searched_through = excluded.searched_through`,
    [Math.floor(NOW / HOUR_MS)],
  );
});

function open(fromFile: readonly CustomCondition[] = []) {
  const alerting = () => ({ ...SERVICE.alerting(), conditions: fromFile });
  const refuseCostly = createRefuseCostly(100_000);
  return world.start({ clock: () => NOW, service: { ...SERVICE, alerting } }, {}, { refuseCostly });
}

test("a back-test says when a condition would have fired, and the service fires then", async () => {
  const { url } = await open();
  const key = await world.key("operator");
  const post = <T = Tested>(body: object, path = `${PATH}/test`, status = 200) =>
    ask<T>(url, path, key, { method: "POST", body: JSON.stringify(body), status });
  const within = { filter: ADMIN, zone: "101", withinMinutes: 30 };
  const any = await post(within);
  expect(any).toMatchObject({ times: 6, events: 12 });
  expect(any.latest[0]).toMatchObject({ zone: 101, to: null, peak: 2 });
  expect(await post({ ...within, moreThan: 3, withinMinutes: 90 })).toMatchObject({ times: 2 });
  expect(await post({ ...within, moreThan: 1, distinct: "address" })).toMatchObject({ times: 6 });
  expect(await post({ ...within, moreThan: 2, distinct: "address", withinMinutes: 90 })).toMatchObject({
    times: 2,
    latest: [{ peak: 3 }, { peak: 3 }],
  });
  const since = String(NOW - 60 * HOUR_MS);
  expect(await post({ ...within, since })).toMatchObject({ times: 4, events: 8 });
  // Between the pairs of hours, and since the first hour that was read.
  expect(
    (await post({ absent: true, withinMinutes: 600, zone: "101" })).latest.map(({ from }) => from),
  ).toEqual(
    [39, 69, 101].map(
      (hours) =>
        expect.stringMatching(new Date(NOW - (hours - 10) * HOUR_MS).toISOString().slice(0, 10)) as string,
    ),
  );

  const added = await post<{ isAdded: boolean; backTest: Tested }>({ ...within, name: "admin" }, PATH, 201);
  expect(added).toMatchObject({ isAdded: true, backTest: any });
  const deps = { database: world.database(), clock: () => NOW, log: silent, zoneIds: [101] };
  const job = createJudgeConditionsJob({ ...deps, afterSpikes: () => undefined, conditions: () => [] });
  await runJob(job);
  const { rows } = await world.database().pool.query("select opened_at, closed_at, peak from spikes");
  expect(rows).toEqual([
    { opened_at: new Date(Date.parse(any.latest[0]?.from ?? "") + MINUTE_MS), closed_at: null, peak: 2 },
  ]);
  expect(await ask(url, PATH, key)).toMatchObject({
    items: [{ name: "admin", holdsIn: [101], isOfFile: false }],
  });
});

test("a condition is added, listed and removed within the rights of the key; those of the file stay", async () => {
  const read = readCondition({
    name: "of-file",
    filters: ADMIN,
    zoneIds: [101],
    severity: "error",
    withinMs: HOUR_MS,
  });
  if ("mistakes" in read) throw new Error("not read");
  const { url } = await open([read.condition]);
  const everywhere = await world.key("operator", { name: "ann" });
  const own = await world.key("operator", { zoneIds: [101] });
  const add = (key: string, body: object, status = 201, query = "") =>
    ask(url, `${PATH}${query}`, key, {
      method: "POST",
      body: JSON.stringify(body),
      status,
    });
  const remove = (key: string, name: string, status = 200) =>
    ask<{ detail: string }>(url, `${PATH}/${name}`, key, { method: "DELETE", status });
  const list = async (key: string) =>
    (await ask<{ items: { name: string; zoneIds: number[] | null }[] }>(url, PATH, key)).items;
  const wanted = { name: "net", filter: ["address:cidr:198.51.100.0/24"] };
  expect(await add(everywhere, wanted, 200, "?dryRun=true")).toMatchObject({ isAdded: false });
  await add(everywhere, wanted);
  await add(everywhere, wanted, 409);
  await add(everywhere, { ...wanted, name: "of-file" }, 409);
  expect((await remove(everywhere, "of-file", 409)).detail).toContain("is in the configuration file");
  await add(own, { ...wanted, name: "mine" }, 403);
  await add(own, { ...wanted, name: "mine", zone: "102" }, 403);
  await add(own, { ...wanted, name: "mine", zone: "101" });
  await add(everywhere, { ...wanted, name: "foreign", zone: "101,102" });
  expect((await list(own)).map(({ name, zoneIds }) => [name, zoneIds])).toEqual([
    ["of-file", [101]],
    ["foreign", [101]],
    ["mine", [101]],
    ["net", null],
  ]);
  await remove(own, "foreign", 403);
  await remove(own, "net", 403);
  await remove(own, "mine");
  await remove(own, "mine", 404);
  await remove(await world.key("reader"), "net", 403);
  const masked = await world.key("operator", { isMasked: true });
  expect(JSON.stringify(await list(masked))).not.toContain("198.51.100.0");
  await add(masked, { ...wanted, name: "masked" }, 400);
  const audit = await world.database().db.select().from(auditEntries);
  const ofMine = audit.filter(({ subject }) => subject === "condition mine");
  expect(ofMine.map(({ action }) => action)).toEqual(["condition.added", "condition.removed"]);
  expect(JSON.stringify(audit)).not.toContain("198.51.100.0");
});

test("a condition that would match everything or cost too much is refused with its cost, and so is one beyond 1,000", async () => {
  const { url } = await open();
  const key = await world.key("operator");
  const refused = async (body: object) => {
    const sent = { name: "wrong", ...body };
    const { mistakes } = await ask<Refused>(url, PATH, key, {
      method: "POST",
      body: JSON.stringify(sent),
      status: 422,
    });
    return mistakes.map(({ field, value = "", rule }) => `${field} ${value} ${rule}`);
  };
  expect(await refused({})).toEqual(["filter  must leave some events out: this matches every event"]);
  expect(await refused({ filter: ["path:wildcard:*"] })).toHaveLength(1);
  const { pool } = world.database();
  await pool.query(
    `insert into waf_events (zone_id, occurred_at, log_id, route, country)
     select 101, to_timestamp($1::float8 / 1000) - i * interval '10 seconds', 'many' || i, 'search', 'DE' from generate_series(1, 4990) i`,
    [NOW - 2 * HOUR_MS],
  );
  const since = String(NOW - 99 * HOUR_MS - 30 * MINUTE_MS);
  await pool.query("update coverage_windows set stored_count = 5000 where starts_at = to_timestamp($1)", [
    Math.floor(NOW / HOUR_MS - 50) * 3_600,
  ]);
  expect((await refused({ filter: ["country:not-eq:XX"], zone: "101", since }))[0]).toMatch(
    /^filter {2}must leave some events out: this matches 100 % of the 5,0\d\d events since /,
  );
  const many = Array.from({ length: 30 }, (_, i) => `url:contains:a${i},b${i},c${i},d${i}`);
  expect(await refused({ filter: many })).toEqual([
    "filter  must cost at most 100 tests of each event, but would cost 120",
  ]);
  expect(await refused({ filter: ["colour:eq:red", "method:eq:POST", "path"] })).toEqual([
    expect.stringMatching(/^filter "colour:eq:red" field must be one of rule, action,/) as string,
    expect.stringMatching(
      /^filter "method:eq:POST" must not test the method: .* Test rule, path or url/,
    ) as string,
    expect.stringMatching(/^filter "path" must be field:op:value/) as string,
  ]);
  expect(await refused({ filter: ADMIN, distinct: "colour", moreThan: 5_000 })).toHaveLength(2);
  expect(await refused({ absent: true, moreThan: 4 })).toEqual([
    "absent  must be alone: an absent event has no count",
  ]);
  const window = {
    method: "POST",
    body: JSON.stringify({ name: "w", filter: ADMIN, withinMinutes: 1_441 }),
    status: 400,
  };
  expect((await ask<Refused>(url, PATH, key, window)).mistakes[0]?.field).toBe("withinMinutes");
  await pool.query(
    `insert into custom_conditions (name, condition, created_by)
     select 'c' || i, '{"filters": ["rule:eq:1"], "query": "", "zoneIds": null}', 'a test' from generate_series(1, 1000) i`,
  );
  expect(await refused({ filter: ADMIN })).toEqual([
    "name wrong must be one of at most 1,000 conditions; there are 1,000. Remove one first",
  ]);
});
