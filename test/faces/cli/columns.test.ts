import { readFileSync } from "node:fs";
import path from "node:path";
import { parquetReadObjects } from "hyparquet";
import { compressors } from "hyparquet-compressors";
import { afterAll, beforeAll, expect, test } from "vitest";
import { insertRawBlocks } from "#db/ingest/raw-blocks.ts";
import { listAudit } from "#db/people/audit-trail.ts";
import { exportCommand } from "#faces/cli/export/export.ts";
import { searchCommand } from "#faces/cli/search/search.ts";
import { createIsoFormat } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { packRawBlocks } from "#model/raw-block.ts";
import { hashEventKey } from "#model/waf-event.ts";
import { type ArchiveFolder, archiveDay, openFolder } from "../../archive/archive-folder.ts";
import { openArchiveWorld } from "../../archive/files/archive-world.ts";
import { makeEvent } from "../../detection/trend-support.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { SERVICE } from "../http/default-service.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { runStoreCommand } from "./run-store-command.ts";

/** The first day is in the archive, the second in Postgres. */
const DAY = "2026-11-15";
const DAY_START = Date.parse(DAY);
const NOW = DAY_START + 5 * DAY_MS;
const world = await openArchiveWorld();
let folder: ArchiveFolder;
let environment: Record<string, string>;
let url: string;

beforeAll(async () => {
  folder = await openFolder();
  const events = ["old", "new"].map((logId, day) =>
    makeEvent({
      logId,
      occurredAt: DAY_START + day * DAY_MS + 60_000,
      url: "https://Shop.example/find?q=1,2#top",
      ip: "203.0.113.7",
      ua: "=1+1",
      method: "POST",
      requestId: `id-${logId}`,
    }),
  );
  await world.store(events, { hasRecord: () => false });
  const log = {
    Url: "https://Shop.example/find?q=1,2#top",
    TriggerMatch: { Key: "ARGS:q", Value: "1,2" },
  };
  const entries = events.map(({ logId, occurredAt }) => ({
    occurredAt,
    logIdHash: hashEventKey({ logId, occurredAt }),
    raw: Buffer.from(
      JSON.stringify({
        logId,
        timestamp: occurredAt,
        log: JSON.stringify(log),
        labels: { status: "Blocked" },
      }),
    ),
  }));
  await insertRawBlocks(world.database.db, 101, await packRawBlocks(entries));
  await archiveDay(world.database, folder, DAY);
  environment = { DATABASE_URL: world.database.url, LONGWATCH_ARCHIVE_DIR: folder.folder };
  const api = { clock: () => NOW, service: { ...SERVICE, zoneIds: [101] } };
  ({ url } = await startArchive(world.database.url, {}, api, { files: folder.files }));
});

afterAll(() => folder.close());

const run = (create: typeof searchCommand, args: readonly string[], given = environment) =>
  runStoreCommand(create, given, ["--zone", "101", "--from", "-6d", ...args], { now: NOW });

const COLUMNS = "zone,time,timestamp,method,host,path,query,request_id,address,ruleId,agent";
const toLine = (logId: string, time: string) =>
  `101,${time},${Date.parse(time)},POST,shop.example,/find,"q=1,2",id-${logId},203.0.113.7,942100,'=1+1`;
const LINES = [
  COLUMNS,
  toLine("new", "2026-11-16T01:01:00.000+01:00"),
  toLine("old", "2026-11-15T01:01:00.000+01:00"),
  "",
].join("\r\n");

test("search and export write the chosen columns of archived and open events, here and of a service elsewhere", async () => {
  const { key } = await makeKey(world.database, "exporter");
  const elsewhere = { LONGWATCH_URL: url, LONGWATCH_KEY: key };
  const args = ["--columns", COLUMNS, "--time-zone", "Europe/Amsterdam"];
  for (const given of [environment, elsewhere]) {
    expect(await run(searchCommand, [...args, "--csv"], given)).toEqual({ code: 0, out: LINES, err: "" });
    expect(await run(exportCommand, args, given)).toEqual({ code: 0, out: LINES, err: "" });
    const json = await run(searchCommand, [...args, "--format", "event"], given);
    expect(JSON.parse(json.out.split("\n")[1] ?? "")).toMatchObject({
      zone: 101,
      timestamp: DAY_START + 60_000,
      agent: "=1+1",
    });
    expect(await run(exportCommand, [...args, "--json"], given)).toEqual(json);
  }
  const none = ["--columns", "host,time", "--query", "nowhere"];
  expect((await run(exportCommand, none)).out).toBe("host,time\r\n");
});

test("a search shows the columns that only records have, in UTC and as a table without the option --csv", async () => {
  const { out } = await run(searchCommand, [
    "--columns",
    "logId,time,status,matched",
    "--page-size",
    "1",
    "--limit",
    "2",
  ]);
  expect(out.split("\n")).toEqual([
    expect.stringMatching(/^LOG ID +TIME +STATUS +MATCHED$/),
    "new      2026-11-16T00:01:00.000Z   Blocked   ARGS:q",
    "old      2026-11-15T00:01:00.000Z   Blocked   ARGS:q",
    "1 to 2 of 2 events.",
    "",
  ]);
});

test("a masked key sees chosen columns without whole addresses and without what is in records", async () => {
  const { key } = await makeKey(world.database, "exporter", { isMasked: true });
  const elsewhere = { LONGWATCH_URL: url, LONGWATCH_KEY: key };
  const columns = ["--columns", "address,method,request_id,path"];
  const lines = "address,method,request_id,path\r\n203.0.113.*,,,/find\r\n203.0.113.*,,,/find\r\n";
  expect((await run(searchCommand, [...columns, "--csv"], elsewhere)).out).toBe(lines);
  expect((await run(exportCommand, columns, elsewhere)).out).toBe(lines);
  const more = await run(searchCommand, ["--columns", "status,matched", "--csv"], elsewhere);
  expect(more.out).toBe("status,matched\r\n,\r\n,\r\n");
});

test.each<["search" | "export", string[], string]>([
  ["search", ["--columns", "host,rules"], '--columns "rules" must be one of zone, time,'],
  ["search", ["--columns", "host,host"], '--columns "host" must be given once'],
  ["search", ["--columns", "host", "--json"], '--columns "host" must be left out beside --json'],
  ["search", ["--columns", "host", "--format", "raw"], "must be left out beside --format raw"],
  ["search", ["--columns", "host", "--group-by", "rule"], "must be left out beside --group-by"],
  ["search", ["--columns", "time", "--time-zone", "Mars"], '--time-zone "Mars" must be a time zone'],
  ["search", ["--time-zone", "UTC"], '--time-zone "UTC" must be given with the column time'],
  ["export", ["--columns", "host,status"], '--columns "status" must be left out of an export'],
  ["export", ["--columns", "host", "--format", "ocsf"], "must be left out beside --format ocsf"],
])("the command %s refuses %j with the rule", async (name, args, said) => {
  const ran = await run(name === "search" ? searchCommand : exportCommand, args);
  expect(ran).toMatchObject({ code: 2, out: "" });
  expect(ran.err).toContain(said);
});

test("the API refuses columns with field, value and rule", async () => {
  const { key } = await makeKey(world.database, "exporter");
  const ask = async (route: string, body: object) => {
    const response = await fetch(`${url}/api/v1/zones/101/events/${route}`, {
      method: "POST",
      headers: { AccessKey: key, "content-type": "application/json" },
      body: JSON.stringify({ from: DAY_START, to: NOW, ...body }),
    });
    const { mistakes } = (await response.json()) as { mistakes?: unknown };
    return [response.status, mistakes];
  };
  const unknown = {
    field: "columns[1]",
    value: '"x"',
    rule: expect.stringMatching(/^must be one of zone, time,/),
  };
  expect(await ask("search", { columns: ["host", "x"] })).toEqual([400, [unknown]]);
  expect(await ask("export", { columns: ["host", "x"] })).toEqual([400, [unknown]]);
  const record = {
    field: "columns",
    value: "matched",
    rule: expect.stringContaining("left out of an export"),
  };
  expect(await ask("export", { columns: ["matched"] })).toEqual([400, [record]]);
  const beside = { field: "columns", value: "host", rule: expect.stringContaining("beside groupBy") };
  expect(await ask("search", { columns: ["host"], groupBy: ["rule"] })).toEqual([400, [beside]]);
});

test("an export into a .parquet file has the events that match, from the archive and Postgres, and replaces no file", async () => {
  const out = path.join(makeTemporaryFolder("parquet"), "found.parquet");
  const filtered = ["--filter", "host:eq:shop.example", "--from", "2026-11-15T00:00:30Z", "--out", out];
  const ran = await run(exportCommand, [...filtered, "--by", "eve"]);
  expect(ran).toMatchObject({ code: 0, out: "" });
  expect(ran.err).toMatch(/^wrote .*found\.parquet: 2 events, [\d.]+ kB\n$/);
  const bytes = readFileSync(out);
  const file = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const rows = await parquetReadObjects({ file, compressors });
  expect(rows.map((row) => `${String(row["log_id"])} ${String(row["method"])}`).toSorted()).toEqual([
    "new POST",
    "old POST",
  ]);
  const audit = await listAudit(world.database.db, { since: undefined, action: "events.exported", limit: 1 });
  expect(audit[0]).toMatchObject({ actor: "eve", details: { filteredBy: ["host"] } });
  const again = await run(exportCommand, ["--format", "parquet", ...filtered]);
  expect(again).toMatchObject({ code: 2 });
  expect(again.err).toContain("or a new file that ends in .parquet");
});

test("a time has the offset of its zone at that moment", () => {
  const format = createIsoFormat("Europe/Amsterdam");
  const hour = Date.parse("2026-10-25T00:30:00.000Z");
  expect([format(hour), format(hour + 3_600_000)]).toEqual([
    "2026-10-25T02:30:00.000+02:00",
    "2026-10-25T02:30:00.000+01:00",
  ]);
  expect(createIsoFormat("America/St_Johns")(hour)).toBe("2026-10-24T22:00:00.000-02:30");
  expect([createIsoFormat("UTC")(hour), createIsoFormat()(hour)]).toEqual([
    "2026-10-25T00:30:00.000+00:00",
    "2026-10-25T00:30:00.000Z",
  ]);
});
