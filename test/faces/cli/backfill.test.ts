import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { readSearchedHours } from "#db/proof/horizons.ts";
import type { Emulator } from "#emulator/emulator.ts";
import { backfillCommand } from "#faces/cli/backfill/backfill.ts";
import { HOUR_MS } from "#lib/units.ts";
import { isBackfilled } from "#proof/rules/plan-search.ts";
import { shareDatabase } from "../../db/migrated-database.ts";
import { NOW, openEmulator, oracle } from "../../emulator/support.ts";
import {
  expectedRows,
  openChangingPlatform,
  openIngest,
  storedRows,
  withoutRoute,
  ZONE,
} from "../../ingest/ingest-support.ts";
import { type Ran, runStoreCommand } from "./run-store-command.ts";

const PROGRAM = fileURLToPath(new URL("./backfill-process.ts", import.meta.url));

const database = await shareDatabase();

/** Two UTC days and a bit, in small pages. */
function openHistory(): Promise<Emulator> {
  return openEmulator({ historyHours: 30, eventsPerSecond: 0.01, switches: { pageSize: 30 } });
}

function environment({ accessKey }: Emulator, url: string): Record<string, string> {
  return {
    DATABASE_URL: database.url,
    EDGE_API_URL: url,
    EDGE_API_KEY: accessKey,
    EDGE_SHIELD_ZONES: "101",
    EDGE_REQUESTS_PER_SECOND: "1000",
  };
}

function run(
  emulator: Emulator,
  args: string,
  { url = emulator.url, now = emulator.now() } = {},
): Promise<Ran> {
  return runStoreCommand(
    (readConfig, io) => backfillCommand(readConfig, io, (_database, clock) => Promise.resolve(clock)),
    environment(emulator, url),
    args.split(" "),
    { now },
  );
}

/** The command in a process of its own, killed with the platform's answer of this number in hand. */
async function runKilled(emulator: Emulator, killAt: number, args: string): Promise<void> {
  let answered = 0;
  let kill: () => void = () => undefined;
  const url = await openChangingPlatform(emulator, (body) => {
    if (++answered === killAt) kill();
    return body;
  });
  const child = fork(PROGRAM, [database.url, url, emulator.accessKey, String(NOW), ...args.split(" ")]);
  kill = () => void child.kill("SIGKILL");
  onTestFinished(() => void child.kill("SIGKILL"));
  const [, signal] = (await once(child, "exit")) as [number | null, string | null];
  expect(signal).toBe("SIGKILL");
  // Expires the leases of dead processes.
  await database.pool.query(
    "update leases set expires_at = now() - interval '1 second' where expires_at is not null",
  );
}

/** The command in this process, which ends because the platform refuses the key behind the answer of this number. */
async function runCut(emulator: Emulator, cutAt: number, args: string): Promise<void> {
  let answered = 0;
  const url = await openChangingPlatform(emulator, (body) => {
    if (++answered === cutAt) emulator.addFault({ kind: "unauthorized" });
    return body;
  });
  expect(await run(emulator, args, { url })).toMatchObject({ code: 1, out: "" });
  emulator.clearFaults();
}

async function query<Row>(text: string): Promise<Row[]> {
  return (await database.pool.query(text)).rows as Row[];
}

const WRONG_COUNTS = `
  select starts_at from coverage_windows w full join (
    select date_trunc('hour', occurred_at) as starts_at, count(*) as n from waf_events group by 1) e using (starts_at)
  where coalesce(w.stored_count, 0) <> coalesce(e.n, 0)`;

/** Leaves out the values that a route cannot have, on both sides. */
const UNKNOWN_TO = {
  search: [],
  export: ["message"],
  list: ["feature", "ja4", "ip", "rule_id", "asn", "country", "action", "ua", "url", "message"],
} as const;

function without(rows: readonly object[], names: readonly string[]) {
  return rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !names.includes(name))));
}

// A process costs more than the rest of a test: one route shows that nothing is needed which a killed process does not leave.
test.each([
  ["search", "is killed", runKilled, 14],
  ["export", "fails", runCut, 33],
  ["list", "fails", runCut, 18],
] as const)(
  "a backfill by %s that %s goes on and ends with exactly the platform's events",
  async (route, _, endEarly, answers) => {
    const emulator = await openHistory();
    const args = `--zone 101 --from 2026-11-19 --to now --route ${route}`;
    await endEarly(emulator, answers, args);
    const before = await storedRows(database);
    expect(before.length).toBeGreaterThan(0);

    const { code, out, err } = await run(emulator, args);
    expect({ code, err }).toEqual({
      code: 0,
      err: expect.stringContaining(`by ${route}, continuing at 2026-11-`),
    });

    const events = (await oracle(emulator)).filter(({ timestamp }) => timestamp >= Date.UTC(2026, 10, 19));
    expect(before.length).toBeLessThan(events.length);
    const rows = withoutRoute(await storedRows(database));
    expect(without(rows, UNKNOWN_TO[route])).toEqual(without(expectedRows(events), UNKNOWN_TO[route]));
    expect(await query(WRONG_COUNTS)).toEqual([]);
    // Each event was new once, in whichever life.
    const total = events.length.toLocaleString("en-US");
    expect(out).toContain(`, ${total} new since this backfill began.`);
    // Not everything was read again.
    expect(Number(/Done: ([\d,]+) events read/.exec(out)?.[1]?.replaceAll(",", ""))).toBeLessThan(
      events.length,
    );

    const again = await run(emulator, args);
    expect(again).toMatchObject({
      code: 0,
      out: expect.stringContaining(`already complete, with ${total} new events`),
    });
    const restarted = await run(emulator, `${args} --restart`);
    expect(restarted.out).toBe(`Done: ${total} events read, 0 new since this backfill began.\n`);
  },
);

test("whole hours are read, which the service need not search again", async () => {
  const emulator = await openHistory();
  await run(emulator, "--zone 101 --from 2026-11-20T08:30 --to 2026-11-20T11:10");
  const at = (hour: number) => Date.UTC(2026, 10, 20, hour);
  const hours = await readSearchedHours(database.db, ZONE, { fromMs: at(8), toMs: at(12) });
  expect(hours.map(({ searchedThrough }) => searchedThrough)).toEqual([
    at(9),
    at(10),
    at(11),
    at(11) + 600_000,
  ]);
  expect(isBackfilled(NOW, hours, { fromMs: at(8), toMs: at(11) })).toBe(true);
  // The whole ones had settled: what was read is their closing search.
  const closed = await query<{ starts_at: Date; closing_search_at: Date }>(
    "select starts_at, closing_search_at from coverage_windows where closing_search_at is not null order by 1",
  );
  expect(closed.map((hour) => [hour.starts_at.getTime(), hour.closing_search_at.getTime()])).toEqual([
    [at(8), NOW],
    [at(9), NOW],
    [at(10), NOW],
  ]);
});

test("a relative span typed again a little later goes on where the first one stood", async () => {
  const emulator = await openHistory();
  await runCut(emulator, 6, "--zone 101 --from -20h --to now --route search");
  const later = NOW + 90_000;
  emulator.setNow(later);
  const { code, err } = await run(emulator, "--zone 101 --from -20h --to now --route search");
  expect({ code, err }).toEqual({ code: 0, err: expect.stringContaining(", continuing at 2026-11-") });
  const left = await query<{ rows: number }>(
    "select count(*)::integer as rows from coverage_windows where read_again is not null and not read_again ? 'doneAt'",
  );
  expect(left).toEqual([{ rows: 0 }]);
  const events = (await oracle(emulator)).filter(({ timestamp }) => timestamp >= later - 20 * HOUR_MS);
  const rows = (await storedRows(database)).filter(({ at }) => at >= later - 20 * HOUR_MS);
  expect(withoutRoute(rows)).toEqual(expectedRows(events));
});

test("with the service running, every event is stored once and counted once", async () => {
  const emulator = await openHistory();
  const service = await openIngest(emulator, { database, openHours: 31 });
  const args = "--zone 101 --from 2026-11-19 --to now --route";
  const done = await Promise.all([
    run(emulator, `${args} search`),
    service.poll(),
    service.walk(),
    run(emulator, `${args} list`),
  ]);
  expect([done[0].code, done[3].code]).toEqual([0, 0]);
  await service.walk();
  expect(withoutRoute(await storedRows(database))).toEqual(expectedRows(await oracle(emulator)));
  expect(await query(WRONG_COUNTS)).toEqual([]);
});

test("auto searches what was never searched and lists whole days that were", async () => {
  const emulator = await openHistory();
  const days = "--zone 101 --from 2026-11-19 --to 2026-11-20";
  expect((await run(emulator, days)).err).toContain("by search");
  expect((await run(emulator, days)).err).toContain("by list");
  expect((await run(emulator, "--zone 101 --from -3h --to now --route auto")).err).toContain("by search");
});

test("an export whose header names no logId is refused by the column's name, and nothing is stored", async () => {
  const emulator = await openHistory();
  const url = await openChangingPlatform(emulator, (body, asked) =>
    asked.endsWith("/export") ? body.replace("timestamp,logId,", "timestamp,\u001b[2Jevent,") : body,
  );
  const { code, out, err } = await run(emulator, "--zone 101 --from -3h --to now --route export", { url });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("has no column logId");
  expect(err).toContain("timestamp,\\u001b[2Jevent");
  expect(err).not.toContain("\u001b");
  expect(await storedRows(database)).toEqual([]);
});

test("an export that ends early is not taken for the whole", async () => {
  const emulator = await openHistory();
  const url = await openChangingPlatform(emulator, (body, asked) =>
    asked.endsWith("/export") ? body.split("\r\n").slice(0, 20).join("\r\n") : body,
  );
  const { code, err } = await run(emulator, "--zone 101 --from -3h --to now --route export", { url });
  expect(code).toBe(1);
  expect(err).toMatch(
    /the export of 2026-11-20T12:00:00.000Z to 2026-11-20T13:00:00.000Z ended after 19 of \d+ events/,
  );
  expect(await query("select starts_at from coverage_windows where read_again ? 'doneAt'")).toEqual([]);
});

test("a search with an empty page is not taken for the whole", async () => {
  const emulator = await openHistory();
  const url = await openChangingPlatform(emulator, (body, asked) =>
    asked.endsWith("/search") ? body.replace(/"rows":\[.*\]/s, '"rows":[]') : body,
  );
  const { code, err } = await run(emulator, "--zone 101 --from -3h --to now --route search", { url });
  expect(code).toBe(1);
  expect(err).toMatch(
    /the search of 2026-11-20T12:00:00.000Z to 2026-11-20T13:00:00.000Z ended early \(A search page is empty/,
  );
  expect(await query("select starts_at from coverage_windows where read_again ? 'doneAt'")).toEqual([]);
});

test("a list that goes round in a circle ends the backfill with an error", async () => {
  const emulator = await openHistory();
  emulator.addFault({ kind: "token-loop", pages: 1 });
  const { code, err } = await run(emulator, "--zone 101 --from 2026-11-20 --to now --route list");
  expect(code).toBe(1);
  expect(err).toContain("the list of 2026-11-20 cannot be read to its end");
});

test.each([
  [
    "--from -3h --to now --route fast --quick",
    ['"--quick" is not', "--zone is missing", '--route "fast" must be one of auto, list'],
  ],
  ["--zone 0 --from 12 --to later", ['--zone "0" must be', '--from "12" must be', '--to "later" must be']],
  ["--zone 101", ["--from is missing", "--to is missing"]],
  ["--zone 101 --from now --to -1h", ['--to "-1h" must be after the start of the span']],
  [
    "--zone 101 --from -73h --to +1h",
    [
      '--from "-73h" must be 2026-11-17T15:32:00Z or later: the platform keeps events for 72 hours',
      '--to "+1h" must be now (2026-11-20T15:30:00Z) or earlier',
    ],
  ],
  [
    "--zone 101 --from -70h --to now --route list",
    [
      '--from "-70h" must be 2026-11-18T00:00:00Z or later: the list serves today and the two UTC days before',
    ],
  ],
] as const)("mistakes are told all at once, and nothing is sent: %s", async (args, says) => {
  const emulator = await openEmulator();
  const { code, out, err } = await run(emulator, args);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  for (const said of says) expect(err).toContain(said);
  expect(emulator.requests().counts).toEqual({});
});

test("just 72 hours are taken, but for what expires while it is asked for", async () => {
  const emulator = await openEmulator();
  const { code, err } = await run(emulator, "--zone 101 --from -72h --to now");
  expect(code).toBe(0);
  expect(err).toContain("Events before 2026-11-17 15:32 UTC expire too soon to be read.");
});

test("what the platform forgets before it is read is named, and the backfill ends", async () => {
  const emulator = await openEmulator({ historyHours: 72, eventsPerSecond: 0.003 });
  let answered = 0;
  const url = await openChangingPlatform(emulator, (body) => {
    // The count of the whole span, and the first hour.
    if (++answered === 2) emulator.setNow(NOW + 2 * HOUR_MS);
    return body;
  });
  const args = "--zone 101 --from 2026-11-17T16:10 --to 2026-11-17T20:00 --route search";
  const begin = () =>
    runStoreCommand(
      (readConfig, io) => backfillCommand(readConfig, io, async () => () => emulator.now()),
      environment(emulator, url),
      args.split(" "),
      { now: NOW },
    );
  const { code, err } = await begin();
  expect(code).toBe(1);
  expect(err).toContain(
    "The platform forgot 2026-11-17 17:00 to 2026-11-17 17:32 UTC before the backfill read it.",
  );
  const left = await query(
    "select from coverage_windows where read_again is not null and not read_again ? 'doneAt'",
  );
  expect(left).toEqual([]);
  expect((await begin()).out).toContain("already complete");
});

test("it explains itself with examples", async () => {
  const emulator = await openEmulator();
  const { code, out } = await run(emulator, "--help");
  expect(code).toBe(0);
  expect(out).toContain("Examples:\n  npm run -s longwatch -- backfill");
});
