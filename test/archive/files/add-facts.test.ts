import { fork } from "node:child_process";
import { once } from "node:events";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { restoreDay, rewriteArchive } from "#archive/operations/restore-day.ts";
import { verifyArchive } from "#archive/operations/verify-archive.ts";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { readFile } from "#db/archive/day-files.ts";
import { readHashKey } from "#db/health/server-facts.ts";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { archiveCommand } from "#faces/cli/archive/archive.ts";
import { type AddFactsStep, addFacts, rewriteDay } from "#jobs/archive/rewrite-day.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { DAY_MS } from "#lib/units.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { readRequest, toFactColumns, UNKNOWN_FACTS } from "#model/request-facts.ts";
import { hashEventKey, type WafEvent } from "#model/waf-event.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { runStoreCommand } from "../../faces/cli/run-store-command.ts";
import { environment } from "../../people/erasure-world.ts";
import { sample } from "../../support/sample.ts";
import { DAY, DAY_START, NOW, openArchiveWorld, readEventsFile } from "./archive-world.ts";
import { toVersionOne } from "./version-one.ts";

const PROGRAM = fileURLToPath(new URL("./archive-child.ts", import.meta.url));
const { signal } = new AbortController();
const world = await openArchiveWorld();
let lastZone = 300;

const IPS = ["203.0.113.7", "203.0.113.8", "erased", "anon-74r3l3nd4ia4o-25b2kpscrmniq"];

/** Events without facts; every fifth has no record. */
const EVENTS = Array.from({ length: 60 }, (_, index) =>
  makeEvent({
    occurredAt: DAY_START + index * 60_000,
    logId: `e${String(index).padStart(2, "0")}`,
    ip: IPS[index % 4] ?? null,
    ua: index % 7 === 0 ? "sqlmap/1.7" : "Mozilla",
    url: index % 9 === 0 ? null : `https://Shop.example.test/item/${index % 5}?q=${index}`,
  }),
);
const hasRecord = (_: WafEvent, index: number) => index % 5 !== 4;

function recordOf({ logId, occurredAt, url }: WafEvent, index: number): Buffer {
  const log = {
    Url: url,
    Headers: [
      { Name: "CDN-RequestId", Value: `request "${index >> 1}", odd` },
      { Name: "Cookie", Value: index % 2 === 0 ? "session=1" : "" },
    ],
    TriggerMatch: { Key: "ARGS:q", Value: index % 3 === 0 ? "' or 1=1 --" : "fine" },
  };
  const labels = { method: index % 2 === 0 ? "post" : "GET" };
  return Buffer.from(JSON.stringify({ logId, timestamp: occurredAt, log: JSON.stringify(log), labels }));
}

/** Archives the events as a new zone's day, in the first version of the files. */
async function archiveOne(): Promise<number> {
  const zoneId = ++lastZone;
  await world.store(EVENTS, { zoneId, hasRecord: () => false });
  const entries = EVENTS.flatMap((event, index) =>
    hasRecord(event, index)
      ? [{ occurredAt: event.occurredAt, logIdHash: hashEventKey(event), raw: recordOf(event, index) }]
      : [],
  );
  await insertRawBlocks(world.database.db, zoneId, await packRawBlocks(entries));
  await writeDay(world, { zoneId, day: DAY });
  await toVersionOne(world, { zoneId, day: DAY });
  return zoneId;
}

const filesOf = (zoneId: number) => listValidFiles(world.database.db, { zoneId, day: DAY });

async function fileOf(zoneId: number): Promise<string> {
  const file = (await filesOf(zoneId)).find(({ kind }) => kind === "events");
  return path.join(world.folder, file?.path ?? "");
}

const add = (zoneId: number, onStep: (step: AddFactsStep) => void = () => undefined) =>
  addFacts({ database: world.database, archive: world, onStep }, { zoneId, day: DAY });

/** Looks at one zone, because other tests have left theirs. */
async function problems(zoneId: number): Promise<unknown> {
  const verifying = { ...world, onProgress: () => undefined, signal };
  const scope = { zoneId, from: DAY, to: new Date(DAY_START + DAY_MS).toISOString().slice(0, 10) };
  return (await verifyArchive(world.database.db, verifying, scope)).problems;
}

/** The events with the facts that their records have, by the model alone. */
async function withFacts(): Promise<WafEvent[]> {
  const hashKey = await readHashKey(world.database);
  return EVENTS.map((event, index) => {
    const record = hasRecord(event, index) ? recordOf(event, index) : Buffer.alloc(0);
    const of = { url: event.url ?? "", ua: event.ua ?? "", ruleId: event.ruleId ?? "" };
    const facts = toFactColumns(readRequest(record, of, hashKey));
    const isErased = event.ip === "erased";
    const isHidden = isErased || event.ip?.startsWith("anon-") === true;
    return {
      ...event,
      ...facts,
      ...(isHidden ? { requestId: null } : {}),
      ...(isErased ? { matchedKey: null } : {}),
    };
  });
}

test("a day of the first version gets the facts of its records, and host and path; everything else stays", async () => {
  const zoneId = await archiveOne();
  const before = await filesOf(zoneId);
  expect(await problems(zoneId)).toEqual([]);

  expect(await add(zoneId)).toEqual({ events: 60, records: 48 });

  const expected = await withFacts();
  expect(expected.filter(({ method }) => method === "POST")).toHaveLength(24);
  expect(expected.filter(({ requestId }) => requestId !== null).length).toBeGreaterThan(20);
  expect(await readEventsFile(world, await fileOf(zoneId))).toEqual(expected);
  const [rows = []] = await world.duckdb.run([
    { sql: `select host, path from ${readFile(await fileOf(zoneId))} order by file_row_number` },
  ]);
  expect(rows).toEqual(
    EVENTS.map(({ url }) => (url === null ? [null, null] : [toUrlPart("host", url), toUrlPart("path", url)])),
  );
  const after = await filesOf(zoneId);
  expect(after.map(({ kind, format }) => [kind, format])).toEqual([
    ["events", ARCHIVE_FORMAT],
    ["records", ARCHIVE_FORMAT],
  ]);
  expect(after[1]?.path).toBe(before[1]?.path);
  expect(await problems(zoneId)).toEqual([]);
  expect(await add(zoneId)).toBeNull();
});

test("a day of the first version is restored into Postgres without facts, and archived again", async () => {
  const zoneId = await archiveOne();
  await world.database.pool.query("delete from waf_events where zone_id = $1", [zoneId]);
  await world.database.pool.query("delete from raw_blocks where zone_id = $1", [zoneId]);
  await restoreDay({ database: world.database, archive: world }, { zoneId, day: DAY }, () => undefined);
  const { rows } = await world.database.pool.query(
    `select distinct method, request_id as "requestId", matched_key as "matchedKey", facts from waf_events where zone_id = $1`,
    [zoneId],
  );
  expect(rows).toEqual([UNKNOWN_FACTS]);
  await writeDay(world, { zoneId, day: DAY });
  expect(await readEventsFile(world, await fileOf(zoneId))).toEqual(EVENTS);
});

test("the facts of a restored day are those of its file", async () => {
  const zoneId = await archiveOne();
  await add(zoneId);
  await world.database.pool.query("delete from waf_events where zone_id = $1", [zoneId]);
  await world.database.pool.query("delete from raw_blocks where zone_id = $1", [zoneId]);
  await restoreDay({ database: world.database, archive: world }, { zoneId, day: DAY }, () => undefined);
  await writeDay(world, { zoneId, day: DAY });
  expect(await readEventsFile(world, await fileOf(zoneId))).toEqual(await withFacts());
});

test.each([
  ["the first version", false],
  ["this version", true],
])("an erasure and pseudonyms rewrite a day of %s, and no request id is left", async (_, isNew) => {
  const zoneId = await archiveOne();
  if (isNew) await add(zoneId);
  const known = await withFacts();
  const change = { untilAt: DAY_START + DAY_MS, isErasure: true };
  const parts = { database: world.database, archive: world };
  const erased = await rewriteDay(
    parts,
    { zoneId, day: DAY },
    {
      ...change,
      replace: (ip) => (ip === IPS[0] ? "erased" : null),
    },
  );
  expect(erased).toEqual({ events: 15, records: 12 });
  const empty = { ip: "erased", ua: "", url: "", ja4: "", message: "", requestId: "", matchedKey: null };
  const expected = known.map((event) => (event.ip === IPS[0] ? { ...event, ...empty } : event));
  expect(await readEventsFile(world, await fileOf(zoneId))).toEqual(expected);

  const pseudonyms = { ...change, isErasure: false, replace: () => null };
  const dropped = await rewriteDay(parts, { zoneId, day: DAY }, pseudonyms);
  const withId = expected.filter(({ requestId }) => (requestId ?? "") !== "");
  expect(dropped).toEqual({ events: withId.length, records: 0 });
  expect(withId.length).toBeGreaterThan(0);
  expect(await readEventsFile(world, await fileOf(zoneId))).toEqual(
    expected.map((event) => ({ ...event, requestId: event.requestId === null ? null : "" })),
  );
  expect(await rewriteDay(parts, { zoneId, day: DAY }, pseudonyms)).toEqual({ events: 0, records: 0 });
  expect(await problems(zoneId)).toEqual([]);
});

const STEPS: AddFactsStep[] = ["locked", "written", "published", "entered"];
// The gate has the step that leaves most behind: files of both versions, and a statement of the new one.
test.each(sample(STEPS, (step) => step !== "published"))(
  "a process that is killed once a day with facts is %s leaves the old file valid, and the next run rewrites the day",
  async (step) => {
    const zoneId = await archiveOne();
    const before = await filesOf(zoneId);
    const child = fork(PROGRAM, [world.database.url, world.folder, "facts", String(zoneId), step], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    expect(await once(child, "close")).toEqual([null, "SIGKILL"]);

    expect(await filesOf(zoneId)).toEqual(before);
    for (const file of before) expect(await world.storage.check(file)).toBeNull();
    await add(zoneId);
    expect(await readEventsFile(world, await fileOf(zoneId))).toEqual(await withFacts());
    expect(await problems(zoneId)).toEqual([]);
  },
);

test("two processes at once rewrite a day once", async () => {
  const zoneId = await archiveOne();
  const both = await Promise.all([add(zoneId), add(zoneId)]);
  expect(both.filter((one) => one !== null)).toHaveLength(1);
  expect(await problems(zoneId)).toEqual([]);
});

const run = (line: string) =>
  runStoreCommand(
    archiveCommand,
    { ...environment(world.database), LONGWATCH_ARCHIVE_DIR: world.folder },
    line.split(" "),
    { now: NOW },
  );

test("a run that was stopped goes on with the days that are left", async () => {
  // What other tests have left.
  await run("rewrite");
  const zones = [await archiveOne(), await archiveOne(), await archiveOne()];
  const stop = new AbortController();
  const parts = { database: world.database, archive: world, signal: stop.signal };
  let begun = 0;
  const stopped = rewriteArchive(parts, {
    zoneId: null,
    day: null,
    onDay: () => {
      begun += 1;
      if (begun === 2) stop.abort();
    },
    onFailure: () => undefined,
  });
  await expect(stopped).rejects.toThrow("abort");

  const { out, code } = await run("rewrite --json");
  expect(JSON.parse(out)).toEqual({ days: 2, events: 120, records: 96, failed: 0 });
  expect(code).toBe(0);
  for (const zoneId of zones)
    expect(await readEventsFile(world, await fileOf(zoneId))).toEqual(await withFacts());
  expect((await run("rewrite")).out).toBe("0 days, 0 events, 0 records read\n");
  expect((await run(`rewrite --zone ${zones[0]} --day ${DAY}`)).out).toBe(
    "1 day, 60 events, 48 records read\n",
  );
});

test("a day whose file is damaged stays as it was, the others are rewritten, and the exit code is 1", async () => {
  await run("rewrite");
  const [damaged, whole] = [await archiveOne(), await archiveOne()];
  const [file] = await filesOf(damaged);
  const setHash = (hash: string) =>
    world.database.pool.query("update archive_files set sha256 = $1 where path = $2", [hash, file?.path]);
  await setHash("0".repeat(64));
  const { out, err, code } = await run("rewrite");
  expect(out).toBe("1 day, 60 events, 48 records read; 1 day failed\n");
  expect(err).toContain(`${DAY}, zone ${damaged}, stays as it was: `);
  expect(code).toBe(1);
  expect((await filesOf(whole))[0]?.format).toBe(ARCHIVE_FORMAT);
  await setHash(file?.sha256 ?? "");
  expect((await run("rewrite --zone 999 --day 2026-11-18")).err).toContain(
    "2026-11-18 is not an archive day of zone 999",
  );
});
