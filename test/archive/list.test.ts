import { expect, it } from "vitest";
import { createSecret } from "#lib/secret.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { hashEventKey } from "#model/waf-event.ts";
import { eraseAddress } from "#people/privacy/erase-address.ts";
import { singleAddress } from "#people/rules/erasure-target.ts";
import { createPseudonymKey } from "#people/rules/pseudonym.ts";
import { EventLog, EventLogEntry } from "#platform/contract/event-logs.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { makeKey } from "../faces/http/start-archive.ts";
import { type Ask, createClient, openArchive, post } from "./support.ts";

const DAY = "/shield/event-logs/101/11-20-2026";

interface Page {
  readonly logs: readonly {
    readonly logId: string;
    readonly timestamp: number;
    readonly log: string;
    readonly labels: Record<string, string>;
  }[];
  readonly hasMoreData: boolean;
  readonly continuationToken: string;
}

async function readPage(ask: Ask, token: string): Promise<Page> {
  return JSON.parse((await ask(`${DAY}/${token}`)).text) as Page;
}

async function storedKeys({ pool }: MigratedDatabase): Promise<string[]> {
  const { rows } = await pool.query<{ at: number; log_id: string }>(
    `select (extract(epoch from occurred_at) * 1000)::float8 as at, log_id from waf_events
     where occurred_at >= '2026-11-20' order by occurred_at, log_id`,
  );
  return rows.map(({ at, log_id: logId }) => hashEventKey({ occurredAt: at, logId }));
}

const keyOf = ({ timestamp, logId }: Page["logs"][number]) => hashEventKey({ occurredAt: timestamp, logId });

it("neither repeats nor loses an event while late ones arrive between the pages", {
  timeout: 120_000,
}, async () => {
  const { ask, emulator, ingest, database } = await openArchive({
    zones: [101],
    lateShare: 0.4,
    eventsPerSecond: 0.085,
    historyHours: 8,
  });
  const before = await storedKeys(database);
  const seen: string[] = [];
  let token = "";
  let pages = 0;
  do {
    const page = await readPage(ask, token);
    seen.push(...page.logs.map(keyOf));
    token = page.continuationToken;
    pages++;
    // Late events of the last minutes, and new ones, some of them behind where the pages have come to.
    emulator.advance(3 * MINUTE_MS);
    await ingest.poll();
    await ingest.walk();
  } while (token !== "");
  const after = await storedKeys(database);
  expect(pages).toBeGreaterThan(2);
  expect(after.length).toBeGreaterThan(before.length);
  expect(new Set(seen).size).toBe(seen.length);
  const wasSeen = new Set(seen);
  expect(before.filter((key) => !wasSeen.has(key))).toEqual([]);
  expect(seen).toEqual(after.filter((key) => wasSeen.has(key)));
});

const openSmall = () => openArchive({ zones: [101], eventsPerSecond: 0.05, historyHours: 1 });

it("makes an entry of what is known where there is no record", async () => {
  const { ask, database } = await openSmall();
  const kept = await readPage(ask, "");
  await database.pool.query("delete from raw_blocks");
  const made = await readPage(ask, "");
  expect(made.logs.map(keyOf)).toEqual(kept.logs.map(keyOf));
  for (const [index, entry] of made.logs.entries()) {
    const original = kept.logs[index];
    if (original === undefined) throw new Error("the pages differ in length");
    expect(EventLogEntry.safeParse(entry).success).toBe(true);
    expect(Object.keys(entry)).toEqual(Object.keys(original));
    expect(Object.keys(entry.labels)).toEqual(Object.keys(original.labels));
    const { asn, country, ruleId, status } = original.labels;
    expect(entry.labels).toMatchObject({ asn, country, ruleId, status });
    const [log, recorded] = [entry, original].map((one) => EventLog.parse(JSON.parse(one.log)));
    expect(log).toMatchObject({ Message: recorded?.Message, RemoteIp: recorded?.RemoteIp });
    expect(log?.Url).toBe(recorded?.Url.replaceAll("\0", "\uFFFD").toWellFormed());
  }
});

it("shows nothing any more of a person who was erased since", async () => {
  const { ask, database, emulator } = await openSmall();
  const before = await readPage(ask, "");
  const { rows } = await database.pool.query<{ ip: string; log_id: string }>(
    "select ip, log_id from waf_events where ip = (select ip from waf_events where ip like '%.%' group by ip order by count(*) desc limit 1)",
  );
  const person = rows[0]?.ip ?? "";
  const events = new Set(rows.map((row) => row.log_id));
  const deps = {
    database,
    key: createPseudonymKey(createSecret("a key that only this test has, long enough")),
    clock: () => emulator.now(),
  };
  const erased = { network: singleAddress(person) as never, zoneId: null, includeMasked: false };
  await eraseAddress(
    deps,
    { ...erased, untilAt: emulator.now() },
    { actor: "test", reason: null },
    new AbortController().signal,
  );
  const after = await readPage(ask, "");
  expect(events.size).toBeGreaterThan(1);
  expect(after.logs.map(keyOf)).toEqual(before.logs.map(keyOf));
  const isOf = ({ logId }: Page["logs"][number]) => events.has(logId);
  expect(after.logs.filter(isOf).every(({ log }) => log === "{}")).toBe(true);
  expect(after.logs.filter((entry) => !isOf(entry))).toEqual(before.logs.filter((entry) => !isOf(entry)));
});

it("shows a masked key neither bodies nor headers nor whole addresses, in no operation", async () => {
  const { http, database, ask } = await openSmall();
  const { key } = await makeKey(database, "exporter", { isMasked: true });
  const masked = createClient(http.url, key);
  const open = await readPage(ask, "");
  const shown = await readPage(masked, "");
  expect(shown.logs.map(keyOf)).toEqual(open.logs.map(keyOf));
  for (const [index, entry] of shown.logs.entries()) {
    const log = JSON.parse(entry.log) as Record<string, unknown>;
    expect(log).toMatchObject({ UrlEncodedBody: null, Headers: [], TriggerMatch: null });
    expect(log["RemoteIp"]).toMatch(/\*$/);
    expect(entry.labels).toEqual(open.logs[index]?.labels);
  }
  const window = { from: Date.UTC(2026, 10, 20, 15), to: Date.UTC(2026, 10, 20, 15, 30) };
  const send = (path: string, body: object) =>
    masked(`/shield/event-logs/101/${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });
  const found = JSON.parse((await send("search", window)).text) as {
    rows: { log: unknown; fields: Record<string, string> }[];
  };
  expect(found.rows.length).toBeGreaterThan(10);
  for (const { log, fields } of found.rows) {
    expect(log).toBeNull();
    expect(fields["ip"]).toMatch(/\*$/);
  }
  const lines = (await send("export", window)).text.split("\r\n").slice(1, 20);
  for (const line of lines) expect(line.split(",")[4]).toMatch(/\*$/);
  const refused = await send("search", {
    ...window,
    query: "203.0.113.7",
    filters: [{ field: "ip", op: "eq", value: ["203.0.113.7"] }],
    groupBy: ["ip"],
  });
  expect(refused.status).toBe(400);
  expect(Object.keys((JSON.parse(refused.text) as { errors: object }).errors)).toEqual([
    "filters[0].field",
    "groupBy[0]",
    "query",
  ]);
  // Texts of addresses are not searched: a hit for `207` would reveal the end of an address.
  await database.pool.query("update waf_events set ip = 'qqqq'");
  const query = { ...window, query: "qqqq" };
  const total = (text: string) => (JSON.parse(text) as { total: number }).total;
  expect(total((await ask("/shield/event-logs/101/search", post(query))).text)).toBeGreaterThan(10);
  expect(total((await send("search", query)).text)).toBe(0);
});

it("shows a key nothing of a zone that is not its own", async () => {
  const { http, database, platform } = await openSmall();
  const { key } = await makeKey(database, "operator", { zoneIds: [7] });
  const foreign = createClient(http.url, key);
  for (const path of [
    DAY,
    "/shield/metrics/shield-zone/101/waf-rule/930130",
    "/shield/waf/rules/review-triggered/ai-recommendation/101/930130",
  ]) {
    const [ours, theirs] = [await foreign(path), await platform(path.replace("101", "999"))];
    expect(`${ours.status} ${ours.text}`).toBe(`${theirs.status} ${theirs.text}`);
  }
});
