import { beforeAll, expect, test } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { storeEvents } from "#test/db/new-events.ts";
import { makeEvent } from "#test/detection/trend-support.ts";
import { ask, openApiWorld } from "./api-world.ts";

const world = openApiWorld();
const HOUR = Date.UTC(2026, 10, 20, 10);
const ID = `event/of=101${"x".repeat(150)}`;

beforeAll(async () => {
  const database = world.database();
  await ensurePartitions(database, ["2026-11-20"]);
  await storeEvents(database, 101, [makeEvent({ logId: ID, occurredAt: HOUR })], { expectNew: true });
  await database.pool.query(
    `insert into event_revisions (zone_id, occurred_at, log_id, field, seen_at, accepted_at, before, after) values
       (101, to_timestamp($1), $2, 'url', '2026-11-20 11:00Z', '2026-11-20 11:10Z', '/a?from=203.0.113.7', '<script>'),
       (101, to_timestamp($1), $2, 'ip', '2026-11-20 12:00Z', null, '203.0.113.7', '198.51.100.9'),
       (101, to_timestamp($1) + interval '90 minutes', $2, 'rule_id', '2026-11-20 13:00Z', '2026-11-20 13:20Z', '1', '2'),
       (101, to_timestamp($1) + interval '90 minutes', $2, 'withdrawn', '2026-11-20 13:00Z', '2026-11-20 13:20Z', null, null),
       (101, to_timestamp($1), $2, 'withdrawn', '2026-11-20 14:00Z', null, null, null),
       (101, to_timestamp($1), 'another', 'ja4', '2026-11-20 14:00Z', null, 'a', 'b')`,
    [HOUR / 1_000, ID],
  );
});

const pathOf = (id = ID, zone = 101, at: number | string = HOUR) =>
  `/api/v1/zones/${zone}/events/revisions?logId=${encodeURIComponent(id)}&at=${at}`;

test("the former values of an event are listed newest first, also those of a second time that was merged", async () => {
  const { url } = await world.start();
  const key = await world.key("reader", { zoneIds: [101] });
  const found = await ask<{ withdrawnSince: string | null; values: object[] }>(url, pathOf(), key);
  expect(found).toEqual({
    withdrawnSince: null,
    values: [
      {
        field: "rule",
        before: "1",
        after: "2",
        route: "search",
        seenAt: "2026-11-20T13:00:00.000Z",
        acceptedAt: "2026-11-20T13:20:00.000Z",
      },
      {
        field: "address",
        before: "203.0.113.7",
        after: "198.51.100.9",
        route: "search",
        seenAt: "2026-11-20T12:00:00.000Z",
        acceptedAt: null,
      },
      {
        field: "url",
        before: "/a?from=203.0.113.7",
        after: "<script>",
        route: "search",
        seenAt: "2026-11-20T11:00:00.000Z",
        acceptedAt: "2026-11-20T11:10:00.000Z",
      },
    ],
  });
  await world
    .database()
    .pool.query("update event_revisions set accepted_at = now() where field = 'withdrawn'");
  expect(await ask(url, pathOf(), key)).toMatchObject({ withdrawnSince: "2026-11-20T14:00:00.000Z" });
});

test("a masked key sees the addresses of former values masked, and a key of another zone sees nothing", async () => {
  const { url } = await world.start();
  const masked = await world.key("reader", { isMasked: true });
  const { values } = await ask<{ values: { field: string; before: string; after: string }[] }>(
    url,
    pathOf(),
    masked,
  );
  expect(values.map(({ field, before, after }) => [field, before, after])).toEqual([
    ["rule", "1", "2"],
    ["address", "203.0.113.*", "198.51.100.*"],
    ["url", "/a?from=203.0.113.*", "<script>"],
  ]);
  const other = await world.key("reader", { zoneIds: [102] });
  await ask(url, pathOf(), other, { status: 403 });
  const nothing = { withdrawnSince: null, values: [] };
  expect(await ask(url, pathOf(ID, 102), other)).toEqual(nothing);
  expect(await ask(url, pathOf("unknown"), masked)).toEqual(nothing);
});

test("mistakes are named with their field", async () => {
  const { url } = await world.start();
  const key = await world.key("reader");
  for (const [path, field] of [
    [pathOf("a\0b"), "logId"],
    [pathOf("x".repeat(3_001)), "logId"],
    [pathOf(ID, 101, "yesterday"), "at"],
    [pathOf(ID, 0), "zone"],
  ] as const) {
    const { mistakes } = await ask<{ mistakes: { field: string }[] }>(url, path, key, { status: 400 });
    expect(mistakes.map((one) => one.field)).toEqual([field]);
  }
});
