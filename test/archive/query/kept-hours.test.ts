import { chmod, mkdir, readdir, readFile, rm, stat, utimes, writeFile } from "node:fs/promises";
import path from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Search } from "#archive/rules/query/plan-search.ts";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { prepareSource, selectEvents } from "#archive/rules/sql/event-source.ts";
import { duck, raw } from "#archive/rules/sql/to-condition.ts";
import { searchRows } from "#archive/search/find-rows.ts";
import { readUnion, searchGroups } from "#archive/search/read-union.ts";
import type { SearchDeps } from "#archive/search/searching.ts";
import { createArchiveReader } from "#db/archive/archive-reader.ts";
import { openKeptHours, removeKeptHours } from "#db/archive/kept-files.ts";
import { removeStaleHours } from "#db/archive/kept-hours.ts";
import { learnFacts } from "#db/ingest/event-rows.ts";
import { mergeDoubles } from "#db/ingest/merge-doubles.ts";
import { removeEvents } from "#db/ingest/remove-events.ts";
import { eraseEvents } from "#db/people/erase-events.ts";
import { replaceAddressesOf } from "#db/people/pseudonymise.ts";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { reopenHours } from "#db/proof/reopen-hours.ts";
import { rewriteDay } from "#jobs/archive/rewrite-day.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { storedColumns } from "#model/archive-layout.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { eraseAddress } from "#people/privacy/erase-address.ts";
import { recordEraser } from "#people/rules/erasure-guard.ts";
import { singleAddress } from "#people/rules/erasure-target.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { KEY } from "../../people/erasure-world.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../archive-folder.ts";

const ZONE = 101;
/** In the hours that the platform still serves, whose seals can be withdrawn. */
const START = Math.floor(Date.now() / DAY_MS) * DAY_MS - DAY_MS;
const DAY = new Date(START).toISOString().slice(0, 10);
const OLD_DAY = new Date(START - 3 * DAY_MS).toISOString().slice(0, 10);
/** Sealed hours of events, and one that is not sealed. */
const [SEALED, PER_HOUR] = [3, 200];
const WINDOW = { from: START, to: START + DAY_MS };
const { signal } = new AbortController();

let database: MigratedDatabase;
let folder: ArchiveFolder;
let kept: string;

beforeAll(async () => {
  [database, folder] = await Promise.all([createMigratedDatabase(), openFolder()]);
  kept = path.join(folder.folder, "tmp", "kept");
  await ensurePartitions(database, [OLD_DAY, DAY]);
});
afterAll(() => Promise.all([database.drop(), folder.close()]));

beforeEach(async () => {
  await database.pool.query(
    "truncate waf_events, hour_changes, coverage_windows, event_revisions, event_aliases, dirty_buckets, archive_files, erasures",
  );
  await removeKeptHours(folder.folder);
  const events = Array.from({ length: (SEALED + 1) * PER_HOUR }, (_, index) => eventAt(index));
  await storeEvents(database, ZONE, events, { expectNew: true });
  await seal();
});

function eventAt(index: number, differing: Partial<WafEvent> = {}): WafEvent {
  const occurredAt = START + index * (HOUR_MS / PER_HOUR);
  const known = { feature: "waf", country: "NL", ip: `192.0.2.${index % 50}` };
  return makeEvent({ logId: `e${index}`, occurredAt, ...known, ...differing });
}

async function seal() {
  await database.pool.query(
    "update coverage_windows set state = 'sealed', sealed_at = clock_timestamp(), evidence = '{}' where starts_at < $1 and state = 'open'",
    [new Date(START + SEALED * HOUR_MS)],
  );
}

function search(asked: Partial<Search>) {
  const rest = { ...WINDOW, query: "", filters: [], groupBy: [], buckets: 0, page: 0, pageSize: 50 };
  return planSearch({ ...rest, ...asked });
}

/** Asks for groups and for filtered rows. */
async function ask(from: Partial<SearchDeps> = {}) {
  const deps = { queries: database, files: folder.files, ...from };
  const texts = search({ query: "192.0.2.7", page: 1, pageSize: 5 });
  return {
    addresses: await searchGroups(deps, [ZONE], search({ groupBy: ["ip"] }), signal),
    both: await searchGroups(deps, [ZONE, 102], search({ groupBy: ["zone", "country"] }), signal),
    rows: await searchRows(deps, ZONE, texts, signal),
    all: await searchRows(deps, ZONE, search({ page: 3 }), signal),
  };
}

/** Returns every event with all of its columns. */
async function readEvents(deps: SearchDeps) {
  const query = { ...WINDOW, clauses: [] };
  const columns = storedColumns();
  const { rows } = await readUnion(deps, [ZONE], query, { columns, signal }, (source) => [
    ...prepareSource(source),
    duck`select json_array(${raw(columns.join(", "))}) from (${selectEvents(source, query, columns)}) order by all`,
  ]);
  return rows;
}
const askPostgres = () => ask({ files: folder.files.withoutKept() });
const listKept = async () => (await readdir(kept)).filter((name) => name.endsWith(".parquet"));

/** A reader of its own, as another process has. */
function openReader() {
  const failures: unknown[] = [];
  const { storage, duckdb } = folder;
  const scratch = path.join(folder.folder, "scratch");
  const onNotKept = (error: unknown) => failures.push(error);
  return { files: createArchiveReader({ duckdb, storage, scratch, onNotKept }), failures };
}

/** Changes an event without a trace, so that an answer that does not know it is a file's. */
async function changeSecretly() {
  await database.pool.query(`begin; set local session_replication_role = replica;
    update waf_events set country = 'ZZ' where log_id = 'e1'; commit`);
}

test("sealed hours are read from a private file, and every search finds what Postgres has", async () => {
  const wanted = await askPostgres();
  await expect(readdir(kept)).rejects.toThrow("ENOENT");
  expect(await ask()).toEqual(wanted);
  const [name = "", ...others] = await listKept();
  expect({ name, others }).toEqual({
    name: expect.stringMatching(new RegExp(`^${DAY}T00\\.${ZONE}\\.[0-9a-f]{16}\\.[0-9a-f]{16}\\.parquet$`)),
    others: [],
  });
  expect((await stat(kept)).mode & 0o777).toBe(0o700);
  expect((await stat(path.join(kept, name))).mode & 0o777).toBe(0o600);
  await changeSecretly();
  expect(await ask()).toEqual(wanted);
  expect(await askPostgres()).not.toEqual(wanted);
});

/** Each kind of change by its own writer. */
const CHANGES: Record<string, () => Promise<unknown>> = {
  "a late event": () =>
    storeEvents(database, ZONE, [eventAt(1, { logId: "late", country: "ZZ" })], { expectNew: true }),
  "a late event on a page of known events": () =>
    storeEvents(database, ZONE, [eventAt(1), eventAt(1, { logId: "late", country: "ZZ" })], {
      expectNew: false,
    }),
  "a value that was missing": () => storeEvents(database, ZONE, [eventAt(1)], { expectNew: false }),
  "a revision": async () => {
    const shown = [eventAt(1, { country: "ZZ" })];
    await storeEvents(database, ZONE, shown, { expectNew: false });
    await database.pool.query("update event_revisions set seen_at = seen_at - interval '1 hour'");
    await storeEvents(database, ZONE, shown, { expectNew: false });
  },
  "facts of another row": () =>
    learnFacts(database.db, ZONE, [
      { ...eventAt(1), method: "PUT", requestId: "found", matchedKey: null, facts: null },
    ]),
  "a merged double": () => inTransaction(database, ({ tx }) => mergeDoubles(tx, ZONE, START, Date.now())),
  "a removal": () =>
    inTransaction(database, ({ tx }) =>
      removeEvents(tx, ZONE, [eventAt(1)], { atMs: Date.now(), reason: "test", servedFrom: 0 }),
    ),
  "an erasure": () => inTransaction(database, ({ tx }) => eraseEvents(tx, ZONE, [eventAt(1)], recordEraser)),
  "a pseudonym": () =>
    inTransaction(database, ({ tx }) =>
      replaceAddressesOf(tx, { zoneId: ZONE, ...WINDOW }, new Map([["192.0.2.1", "anon-1"]])),
    ),
  "an operator's statement": () =>
    database.pool.query("update waf_events set action = 'log' where log_id = 'e1'"),
};

test.each(Object.keys(CHANGES))(
  "no search misses %s, before and after the hour is sealed again",
  async (kind) => {
    if (kind === "a value that was missing")
      await database.pool.query("update waf_events set country = null where log_id = 'e1'");
    if (kind === "a merged double") {
      const near = eventAt(1).occurredAt + MINUTE_MS;
      await storeEvents(database, ZONE, [eventAt(1, { occurredAt: near })], { expectNew: true });
      await seal();
    }
    const read = (files = folder.files) => readEvents({ queries: database, files });
    const before = await read();
    const [name] = await listKept();
    await CHANGES[kind]?.();
    const wanted = await read(folder.files.withoutKept());
    expect(wanted).not.toEqual(before);
    expect(await read()).toEqual(wanted);
    await seal();
    expect(await read()).toEqual(wanted);
    expect(await listKept()).toEqual([expect.not.stringMatching(name ?? "")]);
  },
);

test("a file of hours that were opened, or are of another day's partition, is not read and soon removed", async () => {
  await ask();
  await inTransaction(database, ({ tx }) =>
    reopenHours(tx, ZONE, [{ startsAt: START, reason: "test" }], Date.now()),
  );
  await changeSecretly();
  expect(await ask()).toEqual(await askPostgres());
  await database.pool.query("update waf_events set country = 'NL' where log_id = 'e2'");
  await removeStaleHours(database.db, folder.folder);
  expect(await listKept()).toEqual([]);
});

test("searches at once, of several processes, and after one was killed share one file", async () => {
  const wanted = await askPostgres();
  await mkdir(kept, { recursive: true });
  const [left, young] = ["killed.tmp", "written.tmp"].map((name) => path.join(kept, name));
  for (const file of [left, young]) await writeFile(file ?? "", "PAR1");
  await utimes(left ?? "", 0, 0);
  const readers = [folder.files, openReader().files, openReader().files];
  const answers = await Promise.all(readers.flatMap((files) => [ask({ files }), ask({ files })]));
  expect(answers).toEqual(answers.map(() => wanted));
  expect((await readdir(kept)).sort()).toEqual([...(await listKept()), "written.tmp"]);
  expect(await listKept()).toHaveLength(1);
});

test("a folder that cannot be written costs nothing but time, and is reported once", async () => {
  const wanted = await askPostgres();
  await writeFile(kept, "no folder");
  const { files, failures } = openReader();
  for (let time = 0; time < 2; time++) expect(await ask({ files })).toEqual(wanted);
  expect(failures).toEqual([expect.objectContaining({ code: "EEXIST" })]);
  expect(await readdir(path.join(folder.folder, "scratch"))).toEqual([]);
});

test("a full disk costs nothing but time, and leaves nothing behind", async () => {
  const wanted = await askPostgres();
  const { files, failures } = openReader();
  const full = {
    ...files,
    read: async (...asked: Parameters<typeof files.read>) => {
      if (asked[1].some(({ sql }) => sql.includes("'zstd'") || sql.includes("compression zstd")))
        throw Object.assign(new Error("No space left on device"), { code: "DUCKDB_FILE" });
      return files.read(...asked);
    },
  };
  for (let time = 0; time < 2; time++) expect(await ask({ files: full })).toEqual(wanted);
  expect(failures).toHaveLength(1);
  expect(await readdir(kept)).toEqual([]);
});

test.each(["removed", "damaged"])(
  "a file that is %s between the list and the read changes no answer",
  async (how) => {
    const { files } = openReader();
    const wanted = await ask({ files });
    const { kept: hours } = files;
    const find: NonNullable<typeof hours>["find"] = async (runs) => {
      const found = (await hours?.find(runs)) ?? new Map();
      for (const file of found.values())
        if (how === "removed") await rm(kept, { recursive: true });
        else await writeFile(file, (await readFile(file)).subarray(0, 1_000));
      return found;
    };
    const changing = { ...files, kept: hours === null ? null : { ...hours, find } };
    expect(await ask({ files: changing })).toEqual(wanted);
  },
);

test("a file that was damaged since is not read", async () => {
  const wanted = await ask();
  const [name = ""] = await listKept();
  const bytes = await readFile(path.join(kept, name));
  bytes.writeUInt8(bytes.readUInt8(500) ^ 1, 500);
  await chmod(path.join(kept, name), 0o600);
  await writeFile(path.join(kept, name), bytes);
  expect(await ask()).toEqual(wanted);
  expect(await ask({ files: openReader().files })).toEqual(wanted);
  expect(await readFile(path.join(kept, name))).not.toEqual(bytes);
});

test("the oldest hours are removed beyond the limit", async () => {
  const hours = openKeptHours(folder.folder, { mostBytes: 250 });
  for (const [index, place] of ["2026-11-21T00.7", "2026-11-20T00.7", "2026-11-20T05.7"].entries()) {
    const begun = await hours.begin([
      { place, version: "0", zoneIds: [7], sources: [], rows: 1, from: 0, to: 1 },
    ]);
    for (const { temporary } of begun) await writeFile(temporary, String(index).repeat(100));
    await hours.publish(begun);
  }
  const names = (await listKept()).map((name) => name.slice(0, 15)).sort();
  expect(names).toEqual(["2026-11-20T05.7", "2026-11-21T00.7"]);
});

test("an erasure removes every file, and a day that is archived removes its own", async () => {
  await ask();
  const network = singleAddress("192.0.2.7");
  if (network === null) throw new Error("no address");
  await eraseAddress(
    { database, key: KEY, clock: Date.now, archive: folder },
    { network, zoneId: null, includeMasked: false, untilAt: START + DAY_MS },
    { actor: "test", reason: null },
    signal,
  );
  await expect(readdir(kept)).rejects.toThrow("ENOENT");
  const wanted = await ask();
  await database.pool.query(
    "update coverage_windows set state = 'sealed', sealed_at = now(), evidence = '{}'",
  );
  await archiveDay(database, folder, DAY);
  expect({ ...(await ask()).addresses, source: "events" }).toEqual(wanted.addresses);
  await removeStaleHours(database.db, folder.folder);
  expect(await listKept()).toEqual([]);
});

test("a search of many small zones reads one file a day of them, and never a zone that was not asked for", async () => {
  const zones = Array.from({ length: 12 }, (_, index) => 201 + index);
  for (const zone of zones) {
    const own = Array.from({ length: 60 }, (_, index) => eventAt(index, { logId: `${zone}-${index}` }));
    const old = own.map((event) => ({ ...event, occurredAt: event.occurredAt - 3 * DAY_MS }));
    await storeEvents(database, zone, [...own, ...old], { expectNew: true });
  }
  await seal();
  for (const zoneId of zones) await archiveDay(database, folder, OLD_DAY, { zoneId });
  const window = { from: START - 3 * DAY_MS + HOUR_MS / 4, to: START + DAY_MS };
  const asked = { ...search({ groupBy: ["zone", "ip"], pageSize: 1_000 }), ...window };
  const read = (of: readonly number[], files = folder.files) =>
    searchGroups({ queries: database, files }, of, asked, signal);
  const expectSame = async (of: readonly number[]) => {
    const wanted = await read(of, folder.files.withoutKept());
    for (let time = 0; time < 2; time++) expect(await read(of)).toEqual(wanted);
    return wanted;
  };
  expect(await expectSame(zones)).toMatchObject({ source: "archive" });
  const names = await listKept();
  expect(names.map((name) => name.replace(/\.z[0-9a-f]{16}\..*/, ".z")).sort()).toEqual([
    `${OLD_DAY}T00.z`,
    `${DAY}T00.z`,
  ]);
  await expectSame(zones.slice(0, 11));
  expect(await listKept()).toHaveLength(4);
  // An erasure replaces the file of a zone's day.
  await rewriteDay(
    { database, archive: { storage: folder.storage, duckdb: folder.duckdb } },
    { zoneId: 205, day: OLD_DAY },
    { replace: () => "erased", untilAt: Date.now(), isErasure: true },
  );
  const after = await expectSame(zones);
  expect(after.groups.some(({ key }) => key["zone"] === "205" && key["ip"] === "erased")).toBe(true);
  await database.pool.query("update hour_changes set changed_at = changed_at - interval '1 day'");
  await removeStaleHours(database.db, folder.folder);
  expect((await listKept()).filter((name) => name.startsWith(OLD_DAY))).toEqual([]);
});
