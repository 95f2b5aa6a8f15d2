import { afterEach, beforeEach, expect, test } from "vitest";
import { quarantineEntries } from "#db/ingest/quarantine.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { cleanText } from "#lib/text.ts";
import { UNKNOWN_FACTS } from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase } from "./migrated-database.ts";
import { storeEvents } from "./new-events.ts";

const NOON = Date.UTC(2026, 10, 20, 12);
let database: MigratedDatabase;

beforeEach(async () => {
  database = await createMigratedDatabase();
  await ensurePartitions(database, ["2026-11-20"]);
});

afterEach(() => database.drop());

function event(logId: string, changed: Partial<WafEvent> = {}): WafEvent {
  const texts = { feature: null, ruleId: "1", ip: null, ja4: null, ua: null, url: null };
  const others = { asn: null, country: null, action: null, message: null, ...UNKNOWN_FACTS };
  return { logId, occurredAt: NOON, route: "list", ...texts, ...others, ...changed };
}

function store(events: readonly WafEvent[], expectNew = false) {
  return storeEvents(database, 7, events, { expectNew });
}

async function rows<Row>(query: string): Promise<Row[]> {
  return (await database.pool.query(query)).rows as Row[];
}

const stored = () =>
  rows<Record<string, string | null>>("select log_id, ip, rule_id, url from waf_events order by 1");

test.each([true, false])(
  "rules that differ by half a character only are one rule, and their page is stored (expectNew %s)",
  async (expectNew) => {
    const events = ["\ud800", "\ud801", "\uFFFD"].map((ruleId, n) =>
      event(`e${n}`, { ruleId: cleanText(ruleId, 200) }),
    );
    expect(await store(events, expectNew)).toEqual({ inserted: 3, filled: 0, reopened: [] });
    expect(await rows("select rule_id from dirty_buckets")).toEqual([{ rule_id: "\uFFFD" }]);
    expect(await rows("select stored_count from coverage_windows")).toEqual([{ stored_count: 3 }]);
  },
);

test.each([true, false])(
  "an event twice in one page is stored and counted once (expectNew %s)",
  async (expectNew) => {
    expect(await store([event("a"), event("b"), event("a")], expectNew)).toEqual({
      inserted: 2,
      filled: 0,
      reopened: [],
    });
    expect(await rows("select stored_count from coverage_windows")).toEqual([{ stored_count: 2 }]);
  },
);

test("the second route fills missing values, unmasks an address, and blanks nothing", async () => {
  await store([event("a", { ip: "203.0.113.*", url: "/kept", ruleId: null })]);
  await store([event("a", { ip: "", url: null, ruleId: "9" })]);
  expect(await stored()).toEqual([{ log_id: "a", ip: "203.0.113.*", rule_id: "9", url: "/kept" }]);
  expect(await store([event("a", { ip: "203.0.113.7", url: "/other" })])).toEqual({
    inserted: 0,
    filled: 1,
    reopened: [],
  });
  await store([event("a", { ip: "203.0.113.*", url: "/other" })]);
  expect(await stored()).toEqual([{ log_id: "a", ip: "203.0.113.7", rule_id: "9", url: "/kept" }]);
  expect(await store([event("a", { ip: "198.51.100.*" })])).toEqual({ inserted: 0, filled: 0, reopened: [] });
});

test("an event whose rule becomes known makes both its old and its new count stale, at its minute only", async () => {
  await store([event("a", { ruleId: null }), event("b", { occurredAt: NOON + 60_000 })]);
  await database.pool.query("delete from dirty_buckets");
  await store([event("a", { ruleId: "9" }), event("b", { occurredAt: NOON + 60_000 })]);
  expect(await rows("select rule_id, minute from dirty_buckets order by 1")).toEqual([
    { rule_id: "", minute: new Date(NOON) },
    { rule_id: "9", minute: new Date(NOON) },
  ]);
});

test.each([true, false])(
  "F34: writers of the same events in opposite orders all succeed, and every event is there once (expectNew %s)",
  async (expectNew) => {
    const events = Array.from({ length: 400 }, (_, n) =>
      event(`e${n}`, { occurredAt: NOON + n * 1_000, ruleId: String(n % 7) }),
    );
    const orders = [events, [...events].reverse(), [...events.slice(200), ...events.slice(0, 200)]];
    const results = await Promise.all(orders.map((order) => store(order, expectNew)));
    expect(results.reduce((sum, { inserted }) => sum + inserted, 0)).toBe(events.length);
    expect(await stored()).toHaveLength(events.length);
    expect(await rows("select sum(stored_count)::integer as n from coverage_windows")).toEqual([{ n: 400 }]);
  },
);

test("a page of which nothing can be read is set aside whole, however many entries it has, and once", async () => {
  const entries = Array.from({ length: 20_000 }, (_, n) => ({
    route: "list" as const,
    day: "2026-11-20",
    reason: "unreadable: timestamp: invalid_type",
    raw: Buffer.from(`{"logId":"${n}","timestamp":"2026-11-20"}`),
  }));
  const setAside = () => inTransaction(database, ({ tx }) => quarantineEntries(tx, 7, entries));
  expect(await setAside()).toBe(20_000);
  expect(await setAside()).toBe(0);
  expect(await rows("select count(*)::integer as n from quarantined_entries")).toEqual([{ n: 20_000 }]);
});
