import { type ChildProcess, fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import path from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from "vitest";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { exportEvents } from "#archive/search/export-events.ts";
import { HOSTILE } from "#emulator/traffic/payloads.ts";
import { createAuditExport } from "#faces/http/routes/edge/platform.ts";
import { readCsv } from "#proof/backfill/read-csv.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { makeKey, startArchive } from "../faces/http/start-archive.ts";
import { archiveDay, openTestFolder } from "./archive-folder.ts";
import { MANY_DAY, storeMany } from "./many-events.ts";
import { mustRead } from "./query/world.ts";
import { createClient, NOW, post } from "./support.ts";

const PATH = "/shield/event-logs/101/export";
const WINDOW = { from: MANY_DAY, to: MANY_DAY + 86_400_000 };

/** For the tests that look at what is in a line. */
const FEW = 60;
/** Three parts of an export. 17 MB are more than the buffers of a connection hold. */
const MANY = 26_000;
/** Nobody changes the many. */
let few: MigratedDatabase;
let many: MigratedDatabase;
beforeAll(async () => {
  [few, many] = await Promise.all([createMigratedDatabase(), createMigratedDatabase()]);
  await Promise.all([storeMany(few, FEW), storeMany(many, MANY, { filler: 400 })]);
});
afterAll(() => Promise.all([few.drop(), many.drop()]));

async function serveMany(database: MigratedDatabase) {
  const http = await startArchive(database.url, {}, {}, { clock: () => NOW, zoneIds: [101] });
  const { key } = await makeKey(database, "exporter");
  return { http, key, ask: createClient(http.url, key) };
}

/** An answer of which nothing has been read yet. */
async function begin(url: string, key: string, window = WINDOW): Promise<IncomingMessage> {
  const headers = { AccessKey: key, "content-type": "application/json" };
  const request = httpRequest(url + PATH, { method: "POST", headers });
  request.end(JSON.stringify(window));
  const [response] = (await once(request, "response")) as [IncomingMessage];
  response.on("error", () => undefined);
  return response;
}

async function countLines(response: IncomingMessage): Promise<number> {
  let lines = 0;
  for await (const chunk of response) {
    const bytes = chunk as Buffer;
    for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) lines++;
  }
  return lines;
}

it("S16: enters who takes what before anything is sent, with fields but no text of the filters", async () => {
  const { ask } = await serveMany(few);
  const filters = [{ field: "ip", op: "eq", value: ["203.0.113.7"] }];
  expect((await ask(PATH, post({ ...WINDOW, filters, query: "canary" }))).status).toBe(200);
  await ask(PATH, post({ ...WINDOW, page: 1 }));

  const { rows } = await few.pool.query<{ actor: string; subject: string; details: object }>(
    "select actor, subject, details from audit_entries where action = 'events.exported' and details -> 'filteredBy' <> '[]'",
  );
  expect(rows).toEqual([
    {
      actor: expect.stringMatching(/^key \w+ \(exporter\)$/),
      subject: "zone 101",
      details: {
        from: new Date(WINDOW.from).toISOString(),
        to: new Date(WINDOW.to).toISOString(),
        filteredBy: ["ip", "ruleId", "url", "ua", "message"],
        isMasked: false,
        network: "127.0.0.1",
        requestId: expect.any(String),
      },
    },
  ]);
});

it("S16: exports nothing that cannot be written down", async () => {
  const { ask } = await serveMany(few);
  await few.pool.query("alter table audit_entries rename to elsewhere");
  onTestFinished(async () => void (await few.pool.query("alter table elsewhere rename to audit_entries")));
  const refused = await ask(PATH, post(WINDOW));
  expect(refused.status).toBe(503);
  expect(refused.text).not.toMatch(/timestamp|elsewhere|relation/);
});

it("S16: a key that exports all the time fills no table, and others export all the same", async () => {
  let now = 0;
  const written: string[] = [];
  const audit = createAuditExport(
    async ({ actor }) => void written.push(actor),
    () => now,
  );
  const by = (keyId: string) => {
    const asked = {
      caller: { keyId, name: "n" },
      ip: "203.0.113.7",
      id: "1",
      method: "POST",
      routeOptions: {},
    };
    return audit(asked as never, {
      zoneIds: [101],
      plan: { from: 0, to: 1, clauses: [], methodClauses: [] },
    });
  };
  for (let n = 0; n < 300; n += 1) await by("a");
  await expect(by("a")).rejects.toMatchObject({ statusCode: 429 });
  await by("b");
  now = 60_000;
  await by("a");
  expect(written).toHaveLength(302);
});

it("exports every event once, newest first, over many parts", async () => {
  const { ask } = await serveMany(many);
  const lines = (await ask(PATH, post(WINDOW))).text.split("\r\n").slice(0, -1);
  expect(lines[0]).toBe("timestamp,logId,feature,ruleId,ip,ja4,ua,url,asn,country,action");
  const { rows } = await many.pool.query<{ key: string }>(
    `select (extract(epoch from occurred_at) * 1000)::bigint || ',' || log_id as key from waf_events
     order by occurred_at desc, log_id desc`,
  );
  expect(lines.slice(1).map((line) => line.split(",", 2).join(","))).toEqual(rows.map(({ key }) => key));
});

it("exports an archive day that takes several parts as it is in Postgres", { timeout: 180_000 }, async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  // A part of a file has 32,768 rows. With 400 rules, it would take half a minute to roll them up.
  await storeMany(database, 34_000, { rules: 1 });
  const folder = await openTestFolder();
  const plan = planSearch(mustRead(WINDOW));
  async function exportDay(): Promise<string> {
    const hash = createHash("sha256");
    const options = { form: { csv: { zone: null } }, signal: new AbortController().signal } as const;
    const deps = { queries: database, files: folder.files };
    for await (const chunk of exportEvents((_, work) => work(deps), 101, plan, options)) hash.update(chunk);
    return hash.digest("hex");
  }
  const open = await exportDay();
  await archiveDay(database, folder, "2026-11-18");
  expect(await exportDay()).toBe(open);
});

it("keeps its memory while a large set leaves it", { timeout: 180_000 }, async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  // Few and long, because an event costs more than its bytes.
  const stored = 13_000;
  await storeMany(database, stored, { filler: 3_300 });
  const child = fork(path.join(import.meta.dirname, "archive-process.ts"), [database.url], {
    // A small young generation, because one that grows meanwhile adds up to 20 MB.
    execArgv: ["--max-old-space-size=96", "--max-semi-space-size=4"],
  });
  onTestFinished(() => void child.kill());
  const { url } = (await once(child, "message"))[0] as { url: string };
  // The first answer has a third of the events, and makes the process load what an export needs.
  const third = { ...WINDOW, to: MANY_DAY + 86_400_000 / 3 };
  expect(await countLines(await begin(url, "any", third))).toBeGreaterThan(4_000);
  const before = await peakOf(child);
  expect(await countLines(await begin(url, "any"))).toBe(stored + 1);
  const grown = (await peakOf(child)) - before;
  // The second answer has about 45 MB, three times as much as the first. An answer that is kept would add the difference. A smaller
  // heap has hardly room for the process itself, which then only collects garbage.
  expect(grown).toBeLessThan(25_000_000);
});

async function peakOf(child: ChildProcess): Promise<number> {
  child.send("how much");
  const [{ peakBytes }] = (await once(child, "message")) as [{ peakBytes: number }];
  return peakBytes;
}

it("holds no connection and no snapshot for a reader that does not read", async () => {
  const { http, key, ask } = await serveMany(many);
  const stalled = await Promise.all([begin(http.url, key), begin(http.url, key)]);
  await vi.waitFor(async () => {
    const { rows } = await many.pool.query<{ busy: number }>(
      `select count(*)::int as busy from pg_stat_activity
       where application_name = 'test queries' and datname = current_database() and state <> 'idle'`,
    );
    expect(rows[0]?.busy).toBe(0);
  });
  expect((await ask("/shield/event-logs/101/search", post({ ...WINDOW, pageSize: 1 }))).status).toBe(200);
  expect(await countLines(stalled[0])).toBe(MANY + 1);
  stalled[1].destroy();
});

it("goes on serving when clients leave in the middle", async () => {
  const { http, key, ask } = await serveMany(many);
  // A key may have two exports at once, so the third would wait for one that has not ended.
  for (let round = 0; round < 3; round++) {
    const response = await begin(http.url, key);
    await once(response, "readable");
    response.destroy();
    await vi.waitFor(async () =>
      expect((await ask(PATH, post({ from: WINDOW.from, to: WINDOW.from + 1 }))).status).toBe(200),
    );
  }
  expect(http.lines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

it("S1: ends an export in the middle once its key is revoked, also one that nobody reads", async () => {
  const parts = { clock: () => NOW, zoneIds: [101], checkKeyEveryMs: 50 };
  const http = await startArchive(many.url, {}, {}, parts);
  const { key, keyId } = await makeKey(many, "exporter");
  const [kept, revoked] = [await makeKey(many, "exporter"), await begin(http.url, key)];
  const other = await begin(http.url, kept.key);
  const count = () => promisify(http.app.server.getConnections.bind(http.app.server))();
  expect(await count()).toBe(2);
  await many.pool.query("update api_keys set revoked_at = now() where key_id = $1", [keyId]);
  const revokedAt = performance.now();

  // Nobody reads: the connection ends all the same.
  await vi.waitFor(async () => expect(await count()).toBe(1));
  // After a minute the server would have ended any connection on which nothing moves.
  expect(performance.now() - revokedAt).toBeLessThan(45_000);
  await expect(countLines(revoked)).rejects.toThrow("aborted");
  expect(revoked.complete).toBe(false);
  expect(await countLines(other)).toBe(MANY + 1);
});

it("ends the connection when it fails in the middle, so that half a file is not taken for a whole one", async () => {
  const { http, key } = await serveMany(many);
  const response = await begin(http.url, key);
  await many.pool.query("alter table waf_events rename to elsewhere");
  onTestFinished(async () => void (await many.pool.query("alter table elsewhere rename to waf_events")));
  await expect(countLines(response)).rejects.toThrow("aborted");
  expect(response.complete).toBe(false);
  const refused = await createClient(http.url, key)(PATH, post(WINDOW));
  expect(refused.status).toBe(500);
  expect(refused.text).not.toMatch(/waf_events|relation|select/i);
});

/** As docs/api.md tells readers to. */
function readBack(cell: string): string {
  return cell.replaceAll(/\\u([0-9a-f]{4})/g, (_, code: string) =>
    String.fromCodePoint(Number.parseInt(code, 16)),
  );
}

async function records(text: string): Promise<string[][]> {
  const found: string[][] = [];
  const chunks = (async function* () {
    yield Buffer.from(text);
  })();
  for await (const record of readCsv(chunks))
    found.push([...(record as unknown as { cells: string[] }).cells]);
  return found;
}

it("writes no cell that a spreadsheet runs, and the same events unchanged as NDJSON", async () => {
  const { ask } = await serveMany(few);
  const texts = [
    "=1+1",
    "+1",
    "-1",
    "@x",
    "\tx",
    "\rx",
    "\nx",
    "＝1",
    "＋1",
    "－1",
    "＠x",
    "'=1",
    '"=1"',
    ",=1",
    ...HOSTILE.map((text) => text.replaceAll("\0", "\uFFFD").toWellFormed()),
  ];
  for (const [index, text] of texts.entries())
    await few.pool.query(
      `update waf_events set ua = $1, url = $1, country = $1, feature = $1, action = $1
       where log_id = (select log_id from waf_events order by log_id offset $2 limit 1)`,
      [text, index],
    );
  const csv = await ask(PATH, post(WINDOW));
  expect(csv.headers.get("content-disposition")).toBe('attachment; filename="event-logs-101.csv"');
  const lines = await ask(PATH, post(WINDOW, { accept: "application/x-ndjson" }));
  expect(lines.type).toBe("application/x-ndjson; charset=utf-8");
  expect(lines.headers.get("content-disposition")).toBe('attachment; filename="event-logs-101.ndjson"');
  const events = lines.text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, string | number>);
  const [header = [], ...rows] = await records(csv.text);
  expect(rows.length).toBe(events.length);
  const isFormula = /^[=+\-@\t\r\n＝＋－＠]/;
  let guarded = 0;
  for (const [index, row] of rows.entries())
    for (const [column, cell] of row.entries()) {
      expect(cell).not.toMatch(isFormula);
      const raw = String(events[index]?.[header[column] ?? ""]);
      if (isFormula.test(raw)) guarded++;
      expect(cell).not.toMatch(/[^\P{Cc}\t\n\r]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u);
      expect(readBack(cell)).toBe(isFormula.test(raw) ? `'${raw}` : raw);
    }
  expect(guarded).toBeGreaterThan(50);
});
