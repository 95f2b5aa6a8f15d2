import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, expect, test } from "vitest";
import { listValidFiles } from "#db/archive/archive-files.ts";
import { readDamagedFiles } from "#db/archive/bring-file.ts";
import { writeDay } from "#jobs/archive/write-day.ts";
import { ask } from "../../faces/http/api/api-world.ts";
import { makeKey, startArchive } from "../../faces/http/start-archive.ts";
import { openRuns } from "../../proof/run-support.ts";
import { type ArchiveWorld, DAY, hostileEvents, NOW, openArchiveWorld, ZONE } from "./archive-world.ts";

const RUNS = "/api/v1/coverage/runs";
const EVENTS = hostileEvents();
const THE_DAY = { kind: "verify-archive", zone: ZONE, from: `${DAY}T05:30:00Z`, to: `${DAY}T06:00:00Z` };

interface Item {
  readonly id: number;
  readonly zoneId: number;
  readonly state: string;
  readonly problem: string | null;
  readonly from: string;
  readonly to: string;
  readonly archive: {
    readonly events: number;
    readonly problemCount: number;
    readonly problems: readonly { day: string; path: string; problem: string }[];
  } | null;
}

const world = await openArchiveWorld();
beforeAll(async () => {
  await world.store(EVENTS);
  await world.store(EVENTS.slice(0, 4), { zoneId: 102 });
  for (const zoneId of [ZONE, 102]) await writeDay(world, { zoneId, day: DAY });
});

const post = (url: string, key: string, body: object = THE_DAY, status = 202) =>
  ask<Item>(url, RUNS, key, { method: "POST", body: JSON.stringify(body), status, headers: JSON_TYPE });
const JSON_TYPE = { "content-type": "application/json" };

async function open(archive: ArchiveWorld | null = world) {
  const { database } = world;
  const clock = () => NOW;
  const { url } = await startArchive(database.url, {}, { clock });
  const parts = { database, clock, platform: { url: "http://127.0.0.1:9", accessKey: "unused" } };
  const { run } = openRuns(archive === null ? parts : { ...parts, archive });
  const { key } = await makeKey(database, "operator");
  const check = async (body = THE_DAY) => {
    const { id } = await post(url, key, body);
    await run(id);
    return ask<Item>(url, `${RUNS}/${id}`, key);
  };
  return { url, key, check };
}

test("a check of an archive day covers the whole day of one zone, and names the file that is damaged until it is whole again", async () => {
  const { check } = await open();

  const whole = await check();

  expect(whole).toMatchObject({ state: "done", problem: null, from: `${DAY}T00:00:00.000Z` });
  expect(whole.archive).toMatchObject({
    days: 1,
    files: 2,
    events: EVENTS.length,
    problemCount: 0,
    problems: [],
  });
  const [file] = await listValidFiles(world.database.db, { zoneId: ZONE, day: DAY, kind: "events" });
  const name = path.join(world.folder, file?.path ?? "");
  const bytes = readFileSync(name);
  writeFileSync(name, bytes.with(bytes.length >> 1, (bytes[bytes.length >> 1] ?? 0) ^ 1));
  const damaged = await check();
  expect(damaged).toMatchObject({
    state: "done",
    archive: {
      problemCount: 1,
      problems: [{ day: DAY, path: file?.path, problem: expect.stringContaining("has another SHA-256") }],
    },
  });
  expect(await readDamagedFiles(world.database.db)).toMatchObject([{ path: file?.path, zoneId: ZONE }]);
  writeFileSync(name, bytes);
  expect((await check()).archive).toMatchObject({ problemCount: 0 });
  expect(await readDamagedFiles(world.database.db)).toEqual([]);
});

test("only operators of the zone start a check, once for each day, and the audit trail names them", async () => {
  const { url, key } = await open();
  const keyOf = async (...given: [role: "reader" | "operator", zoneIds: number[]]) =>
    (await makeKey(world.database, given[0], { zoneIds: given[1] })).key;
  await post(url, await keyOf("reader", [ZONE]), THE_DAY, 403);
  await post(url, await keyOf("operator", [102]), THE_DAY, 403);
  const refused = await ask<{ errors: unknown }>(url, RUNS, key, {
    method: "POST",
    headers: JSON_TYPE,
    body: JSON.stringify({ ...THE_DAY, from: "2026-11-17T00:00:00Z", to: "2026-11-18T00:00:00Z" }),
    status: 422,
  });
  expect(JSON.stringify(refused)).toContain("must be in a span with archive days");

  const [one, other] = await Promise.all([
    post(url, key),
    post(url, key, { ...THE_DAY, from: `${DAY}T00:00:00Z`, to: `${DAY}T23:00:00Z` }),
  ]);

  expect(one?.id).toBe(other?.id);
  const { rows } = await world.database.pool.query(
    "select actor, details from audit_entries where action = 'verify-archive.requested' and subject = $1",
    [`run ${one?.id}`],
  );
  expect(rows).toMatchObject([{ details: { zoneId: ZONE, from: `${DAY}T00:00:00.000Z` } }]);
  const readers = await ask<{ items: Item[] }>(url, RUNS, await keyOf("reader", [102]));
  expect(readers.items.filter(({ zoneId }) => zoneId !== 102)).toEqual([]);
});

test("a check fails with the reason in a process without an archive", async () => {
  const { check } = await open(null);

  const failed = await check({ ...THE_DAY, zone: 102 });

  expect(failed).toMatchObject({ state: "failed", archive: null });
  expect(failed.problem).toContain("LONGWATCH_ARCHIVE_DIR");
});
