import { afterAll, beforeEach, expect, test } from "vitest";
import { createNewestRecords } from "#archive/rules/records/find-records.ts";
import { findDueVerdicts, readVerdicts } from "#db/detection/verdicts.ts";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { spikes } from "#db/schema/spikes.ts";
import { createJudgeVerdictsJob, type JudgeVerdictsDeps } from "#jobs/detection/judge-verdicts.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { BUILT_IN_ACTIONS } from "#model/action-class.ts";
import { VERDICT_TIMES } from "#model/kinds.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { NO_FACTS, packFacts } from "#model/request-facts.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { silent } from "../../ingest/ingest-support.ts";
import { connectAs, createRollUp, makeEvent, runJob, storeAll, ZONE } from "../trend-support.ts";
import { USUAL_PATHS } from "./evidence-of.ts";
import { newSpike } from "./verdict-world.ts";

const database = await createMigratedDatabase();
afterAll(() => database.drop());
const { db } = database;
const OPENED = Date.UTC(2026, 10, 20, 12);
const GOOGLE = "Mozilla/5.0 (compatible; Googlebot/2.1)";
await ensurePartitions(database, ["2026-11-19", "2026-11-20", "2026-11-21"]);

beforeEach(() =>
  database.pool.query(
    "truncate spikes, waf_events, raw_blocks, rule_buckets, dirty_buckets, coverage_windows, zone_usual, exclusions cascade",
  ),
);

/** A rule with a spike, and fifty events of it around the opening. */
async function addSpike(ruleId: string, event: Partial<WafEvent> = {}): Promise<number> {
  const [row] = await db.insert(spikes).values(newSpike(OPENED, { ruleId })).returning({ id: spikes.id });
  const events = Array.from({ length: 50 }, (_, i) =>
    makeEvent({
      logId: `${ruleId}-${i}`,
      occurredAt: OPENED - 2 * MINUTE_MS + i * 4_000,
      ruleId,
      ip: `198.51.100.${i % 10}`,
      url: `https://shop.example.test/reviews/${i % 5}?q=${i}`,
      ua: "Mozilla/5.0",
      asn: "AS64500",
      ja4: "t13d",
      method: "POST",
      matchedKey: i,
      facts: packFacts({ ...NO_FACTS, hasSession: true, hasIdiom: false, isTool: false }),
      ...event,
    }),
  );
  await storeAll(database, events);
  await createRollUp(database)();
  const record = ({ logId }: WafEvent) => ({
    logId,
    log: JSON.stringify({
      TriggerMatch: { Key: "ARGS:title", Value: "it's \0 <b>" },
      Headers: [{ Name: "Cookie", Value: "session=1" }],
    }),
    labels: { method: "POST" },
  });
  const entries = events.map((one) => ({
    occurredAt: one.occurredAt,
    logIdHash: hashEventKey(one),
    raw: Buffer.from(JSON.stringify(record(one))),
  }));
  await insertRawBlocks(db, ZONE, await packRawBlocks(entries));
  return row?.id ?? -1;
}

function createJob(nowMs: () => number, over: Partial<JudgeVerdictsDeps> = {}) {
  const noted = { learn: [] as number[], stored: 0 };
  const deps = {
    database,
    clock: nowMs,
    log: silent,
    actions: BUILT_IN_ACTIONS,
    learnUsual: (zoneId: number) => noted.learn.push(zoneId),
    afterVerdicts: () => {
      noted.stored += 1;
    },
    ...over,
  };
  const job = createJudgeVerdictsJob(deps);
  return { noted, run: (signal?: AbortSignal) => runJob(job, signal) };
}

const timesOf = async (id: number) => ((await readVerdicts(db, [id])).get(id) ?? []).map(({ look }) => look);

test("a verdict is judged from the facts of the alert's events since its window began", async () => {
  const id = await addSpike("942100");
  const { run, noted } = createJob(() => OPENED + 30_000);
  await run();
  const [verdict] = (await readVerdicts(db, [id])).get(id) ?? [];
  expect(verdict).toMatchObject({
    look: "first",
    judgedAt: OPENED + 30_000,
    since: OPENED - 3 * MINUTE_MS,
    counts: { events: 38, requests: 38, addresses: 10, networks: 1, blocked: 38, records: 38 },
    features: { session: { value: 1 }, onePath: { value: 1 } },
    sample: { parameter: "ARGS:title", method: "POST", ruleId: "942100" },
    crawler: null,
  });
  expect(noted).toEqual({ learn: [], stored: 1 });
  expect(await run()).toBe("no verdict is due");
});

test("the sample has the text that matched, from the row of the search, before a record is stored", async () => {
  const id = await addSpike("942100");
  await database.pool.query("truncate raw_blocks");
  const newestRecords = createNewestRecords();
  const rows = [30, 31].map((i) => ({
    logId: `942100-${i}`,
    timestamp: OPENED - 2 * MINUTE_MS + i * 4_000,
    log: { TriggerMatch: { Key: "ARGS:title", Value: `text ${i}` } },
  }));
  newestRecords.keep(
    ZONE,
    [...rows, { logId: 7 }],
    [...rows, {}].map((row) => Buffer.from(JSON.stringify(row))),
  );
  newestRecords.keep(
    ZONE + 1,
    rows,
    rows.map(() => Buffer.from("{}")),
  );
  await createJob(() => OPENED + 30_000, { newestRecords }).run();
  const [verdict] = (await readVerdicts(db, [id])).get(id) ?? [];
  expect(verdict?.sample).toMatchObject({ logId: "942100-31", parameter: "ARGS:title", matched: "text 31" });
});

test("two replicas at once store one verdict of each spike, and both end well", async () => {
  const ids = [await addSpike("1"), await addSpike("2"), await addSpike("3")];
  const replicas = ["one", "other"].map((name) =>
    createJob(() => OPENED + MINUTE_MS - 1, { database: connectAs(name, database) }),
  );
  await Promise.all(replicas.map(({ run }) => run()));
  expect(await Promise.all(ids.map(timesOf))).toEqual([["first"], ["first"], ["first"]]);
});

test("an alert is judged again after 1, 5 and 30 minutes, 6 hours and a day, also if it is over by then", async () => {
  const id = await addSpike("942100");
  let nowMs = OPENED;
  const { run } = createJob(() => nowMs);
  const seen: string[][] = [];
  const times = [0, 1, 4, 5, 29, 30].map((minutes) => minutes * MINUTE_MS);
  for (const afterMs of [...times, 6 * HOUR_MS, 23 * HOUR_MS, DAY_MS, 3 * DAY_MS]) {
    nowMs = OPENED + afterMs;
    if (afterMs === 6 * HOUR_MS) await db.update(spikes).set({ closedAt: new Date(nowMs) });
    await run();
    seen.push(await timesOf(id));
  }
  expect(seen).toEqual([1, 2, 2, 3, 3, 4, 5, 5, 6, 6].map((count) => VERDICT_TIMES.slice(0, count)));
});

test("a spike that was found late is judged at the time that its age allows, after those that were not", async () => {
  const openedAt = new Date(OPENED - 7 * HOUR_MS);
  const spike = (ruleId: string, isLate: boolean) =>
    newSpike(openedAt.getTime(), { ruleId, isLate, closedAt: isLate ? new Date(OPENED - HOUR_MS) : null });
  const rows = [spike("1", true), spike("2", false), spike("3", true)];
  const ids = (await db.insert(spikes).values(rows).returning({ id: spikes.id })).map(({ id }) => id);
  const due = await findDueVerdicts(db, OPENED, 10);
  expect(due.map(({ spike, look }) => [spike.ruleId, look])).toEqual([
    ["2", "six-hours"],
    ["1", "six-hours"],
    ["3", "six-hours"],
  ]);
  await createJob(() => OPENED).run();
  expect(await Promise.all(ids.map(timesOf))).toEqual([["six-hours"], ["six-hours"], ["six-hours"]]);
});

test("the next run judges the spikes that a killed run has not judged", async () => {
  const ids = [
    await addSpike("1", { ua: GOOGLE }),
    await addSpike("2", { ua: GOOGLE }),
    await addSpike("3", { ua: GOOGLE }),
  ];
  const killed = new AbortController();
  const dying = createJob(() => OPENED, {
    verifyCrawler: async () => {
      killed.abort();
      return null;
    },
  });
  await expect(dying.run(killed.signal)).rejects.toThrow(/abort/i);
  expect((await readVerdicts(db, ids)).size).toBe(1);
  await createJob(() => OPENED).run();
  expect(await Promise.all(ids.map(timesOf))).toEqual([["first"], ["first"], ["first"]]);
});

test("an alert that cannot be judged stops no other one, and is tried again", async () => {
  const broken = await addSpike("1", { ua: GOOGLE });
  const whole = await addSpike("2");
  const { run } = createJob(() => OPENED, {
    verifyCrawler: async () => {
      throw new Error("DNS is broken");
    },
  });
  await expect(run()).rejects.toThrow("DNS is broken");
  expect(await timesOf(whole)).toEqual(["first"]);
  expect(await timesOf(broken)).toEqual([]);
  await createJob(() => OPENED).run();
  expect(await timesOf(broken)).toEqual(["first"]);
});

test("a crawler is named only if the operator of its addresses is verified", async () => {
  const id = await addSpike("1", { ua: GOOGLE });
  const asked: string[] = [];
  const verifyCrawler = async (ip: string) => {
    asked.push(ip);
    return "Googlebot";
  };
  await createJob(() => OPENED, { verifyCrawler }).run();
  expect((await readVerdicts(db, [id])).get(id)?.[0]?.crawler).toBe("Googlebot");
  expect(asked).toHaveLength(3);
});

test("a zone with a history of which nothing is usual is learnt, and nothing is said about what is usual meanwhile", async () => {
  await storeAll(database, [makeEvent({ logId: "old", occurredAt: OPENED - DAY_MS })]);
  const id = await addSpike("1");
  const { run, noted } = createJob(() => OPENED);
  await run();
  expect(noted.learn).toEqual([ZONE]);
  const [verdict] = (await readVerdicts(db, [id])).get(id) ?? [];
  expect(verdict?.features.knownPath.value).toBeNull();
  await database.pool.query(
    "insert into zone_usual (zone_id, dimension, value, since) select $1, 'path', unnest($2::text[]), $3",
    [ZONE, ["/reviews/{n}", ...USUAL_PATHS], new Date(OPENED - 2 * HOUR_MS)],
  );
  await createJob(() => OPENED + HOUR_MS).run();
  const later = (await readVerdicts(db, [id])).get(id) ?? [];
  expect(later[1]?.features.knownPath.value).toBe(1);
});

test("a misfire that lasts gets a proposal in the verdict and in the table, and one that is over gets none", async () => {
  await addSpike("942100");
  const over = await addSpike("942200");
  const later = Array.from({ length: 50 }, (_, i) =>
    makeEvent({
      logId: `later-${i}`,
      occurredAt: OPENED + 5 * HOUR_MS + i * MINUTE_MS,
      ruleId: "942100",
      ip: `198.51.100.${i % 10}`,
      url: `https://shop.example.test/reviews/${i % 5}?q=${i}`,
    }),
  );
  await storeAll(database, later);
  const atSixHours = () => createJob(() => OPENED + 6 * HOUR_MS).run();
  await Promise.all([atSixHours(), atSixHours()]);
  const { rows } = await database.pool.query(
    "select spike_id::integer as id, clause from exclusions order by spike_id",
  );
  const clause = { ruleIds: ["942100"], template: "/reviews/{n}", method: "POST", parameter: "ARGS:title" };
  expect(rows).toEqual([{ id: over - 1, clause }]);
  const found = await readVerdicts(db, [over - 1, over]);
  const said = Array.from(found.values(), ([verdict]) => [
    verdict?.said,
    verdict?.isLasting,
    verdict?.exclusion?.form,
  ]);
  expect(said).toEqual([
    ["misfire", true, "narrow"],
    ["misfire", false, undefined],
  ]);
});
