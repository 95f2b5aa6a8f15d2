import pg from "pg";
import { afterAll, beforeAll, expect, inject, test, vi } from "vitest";
import { ensurePartitions } from "#db/postgres/partitions.ts";
import { advanceSearch } from "#db/proof/horizons.ts";
import { createFollower, OVERLAP_MS } from "#faces/cli/tail/follow-events.ts";
import { tailCommand } from "#faces/cli/tail/tail.ts";
import { startOfHour, toDay } from "#model/horizon.ts";
import { UNKNOWN_FACTS } from "#model/request-facts.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { storeEvents } from "../../db/new-events.ts";
import { SERVICE } from "../http/default-service.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { startProxy } from "./proxy.ts";
import { runStoreCommand } from "./run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 10);
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
  await ensurePartitions(database, [toDay(NOW)]);
  for (const zoneId of [101, 102])
    await advanceSearch(database.db, zoneId, { startsAt: startOfHour(NOW), searchedThrough: NOW });
});

afterAll(() => database.drop());

function event(logId: string, occurredAt: number, more: Partial<WafEvent> = {}): WafEvent {
  return {
    logId,
    occurredAt,
    route: "search",
    message: null,
    feature: "waf",
    ruleId: "942100",
    ip: "203.0.113.7",
    ja4: "",
    ua: "curl",
    url: "/",
    asn: "",
    country: "DE",
    action: "block",
    ...UNKNOWN_FACTS,
    ...more,
  };
}

const store = (zoneId: number, ...events: WafEvent[]) =>
  storeEvents(database, zoneId, events, { expectNew: true });

/** Runs the command beside the test, which reads what it has printed so far. */
function startTail(
  args: readonly string[],
  {
    isTTY = false,
    columns = 80,
    closeAfter,
    environment = { DATABASE_URL: database.url },
  }: {
    readonly isTTY?: boolean;
    readonly columns?: number;
    readonly closeAfter?: number;
    readonly environment?: Record<string, string>;
  } = {},
) {
  const stop = new AbortController();
  const printed = { out: "", err: "" };
  const create: typeof tailCommand = (readConfig, io) => {
    if (io === undefined) throw new Error("no streams");
    for (const [name, stream] of [
      ["out", io.stdout],
      ["err", io.stderr],
    ] as const) {
      const write = stream.write.bind(stream);
      stream.write = ((chunk: string) => {
        printed[name] += chunk;
        const isTaken = write(chunk);
        if (closeAfter !== undefined && name === "out" && printed.out.split("\n").length > closeAfter)
          stream.destroy(new Error("EPIPE"));
        return isTaken;
      }) as typeof write;
    }
    return tailCommand(readConfig, {
      ...io,
      stdout: Object.assign(io.stdout, { columns }),
      interrupted: stop.signal,
    });
  };
  const ran = runStoreCommand(create, environment, args, { now: NOW, isTTY });
  return {
    ran,
    until: (stream: "out" | "err", text: string) =>
      vi.waitFor(() => expect(printed[stream].includes(text), `${text} in ${printed.err}`).toBe(true)),
    async stop() {
      stop.abort();
      return ran;
    },
  };
}

const idsOf = (out: string) =>
  out
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { logId: string }).logId);

test("it prints each event once and in order: known, new and late ones, also over an outage of the database", async () => {
  await store(101, event("old", NOW - 3_600_000), event("a", NOW - 30_000), event("c", NOW - 10_000));
  await store(102, event("b", NOW - 20_000));
  const tail = startTail(["--json"]);
  await tail.until("out", '"c"');
  await store(101, event("late", NOW - 25_000));
  await store(102, event("d", NOW - 5_000));
  await tail.until("out", '"d"');
  await tail.until("out", '"late"');
  const name = new URL(database.url).pathname.slice(1);
  const admin = new pg.Client({ connectionString: inject("postgresUrl") });
  await admin.connect();
  await admin.query(`alter database "${name}" allow_connections false`);
  await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where datname = $1", [name]);
  await tail.until("err", "Waiting for the database");
  await admin.query(`alter database "${name}" allow_connections true`);
  await admin.end();
  await store(101, event("after", NOW));
  await tail.until("out", '"after"');
  await tail.until("err", "the database answers again");
  const { code, out, err } = await tail.stop();
  expect(code).toBe(0);
  const ids = idsOf(out);
  expect(ids.slice(0, 3)).toEqual(["a", "b", "c"]);
  expect(ids.slice(3).sort()).toEqual(["after", "d", "late"]);
  expect(err.trimEnd().split("\n")).toHaveLength(2);
});

test("tail prints each event of a service elsewhere once and in order, also over an outage, until the key is revoked", async () => {
  const [first, second] = [111, 112];
  // Before the last minute, which other tests print of all zones.
  const base = NOW - 7_200_000;
  for (const zoneId of [first, second])
    await advanceSearch(database.db, zoneId, { startsAt: startOfHour(NOW), searchedThrough: NOW });
  const hostile = { url: "/a\u001b[2J\r\nb\u202e", action: "log" };
  await store(
    first,
    event("old", base - 3_600_000),
    event("a", base - 30_000),
    event("c", base - 10_000, hostile),
  );
  await store(second, event("b", base - 20_000));
  const service = { ...SERVICE, zoneIds: [first, second] };
  const { url } = await startArchive(database.url, {}, { clock: () => NOW, service });
  const { key, keyId } = await makeKey(database, "reader", { zoneIds: [first, second] });
  let isDown = false;
  const origin = await startProxy(url, {
    answer(response) {
      if (isDown) response.writeHead(502).end("<html>Bad gateway</html>");
      return isDown;
    },
  });
  const environment = { LONGWATCH_URL: origin, LONGWATCH_KEY: key };
  const tail = startTail(["--json", "--since", "-121m"], { environment });
  await tail.until("out", '"c"');
  await store(first, event("late", base - 25_000));
  await store(second, event("d", base - 5_000));
  await tail.until("out", '"d"');
  await tail.until("out", '"late"');
  isDown = true;
  await tail.until("err", "what stands in front of it says HTTP 502. Waiting for the service ...");
  await store(first, event("after", base));
  isDown = false;
  await tail.until("out", '"after"');
  await tail.until("err", "the service answers again");
  await database.pool.query("update api_keys set revoked_at = now() where key_id = $1", [keyId]);
  const { code, out, err } = await tail.ran;
  expect(code).toBe(1);
  const ids = idsOf(out);
  expect(ids.slice(0, 3)).toEqual(["a", "b", "c"]);
  expect(ids.slice(3).sort()).toEqual(["after", "d", "late"]);
  expect(err.trimEnd().split("\n").at(-1)).toContain("refused the key");
  expect(out).not.toContain("\u001b");
});

test("Ctrl-C ends it while a service elsewhere does not answer", { timeout: 60_000 }, async () => {
  const asked = Promise.withResolvers<void>();
  const origin = await startProxy("http://127.0.0.1:1", {
    answer() {
      asked.resolve();
      return true;
    },
  });
  const tail = startTail([], { environment: { LONGWATCH_URL: origin, LONGWATCH_KEY: "key" } });
  await asked.promise;
  expect(await tail.stop()).toEqual({ code: 0, out: "", err: "" });
});

test("tail reads a long span of a service elsewhere in parts, oldest first", async () => {
  const zoneId = 113;
  const start = NOW - 3 * 3_600_000;
  await advanceSearch(database.db, zoneId, { startsAt: startOfHour(NOW), searchedThrough: NOW });
  // More than are read at once, and most of them in one minute.
  const count = 7_000;
  const at = (n: number) => (n < 6_000 ? start + 60_000 + 9 * n : start + 3_600_000 + n * 10);
  for (let n = 0; n < count; n += 500)
    await store(zoneId, ...Array.from({ length: 500 }, (_, i) => event(`n${n + i}`, at(n + i))));
  const { url } = await startArchive(database.url, {}, { clock: () => NOW });
  const { key } = await makeKey(database, "reader");
  const environment = { LONGWATCH_URL: url, LONGWATCH_KEY: key };
  const tail = startTail(["--json", "--zone", String(zoneId), "--since", "-4h"], { environment });
  await tail.until("out", `"n${count - 1}"`);
  const { out } = await tail.stop();
  expect(idsOf(out)).toEqual(Array.from({ length: count }, (_, n) => `n${n}`));
});

test("filters, --since and --zone choose events, and a payload cannot act on the terminal", async () => {
  await store(
    102,
    event("x", NOW - 600_000, { url: "/a\u001b[2J\r\nb\u202e", action: "log", ua: "u".repeat(500) }),
    event("y", NOW - 600_001, { action: "challenge" }),
  );
  const args = ["--zone", "102", "--since", "-1h", "--filter", "action:in:log,challenge", "--query", "/a"];
  const tail = startTail(args, { isTTY: true, columns: 80 });
  await tail.until("out", "/a");
  const { out } = await tail.stop();
  const lines = out.trimEnd().split("\n");
  expect(lines).toHaveLength(2);
  // oxlint-disable-next-line no-control-regex -- the styles of this program
  const plain = out.replaceAll(/\u001b\[\d+m/g, "");
  expect(plain).toMatch(/^2026-11-20 UTC\n15:00:00\.000 102 log +942100 +203\.0\.113\.7 +DE \/a\\u001b\[2J/);
  expect(plain).not.toContain("\u001b");
  expect(plain.split("\n")[1]?.length).toBeLessThanOrEqual(80);
});

test("a closed pipe ends it silently", { timeout: 30_000 }, async () => {
  const at = NOW - 7_200_000;
  await store(101, event("p", at), event("q", at + 1), event("r", at + 2));
  const tail = startTail(["--since", "-3h"], { closeAfter: 2 });
  expect(await tail.ran).toMatchObject({ code: 0, err: "" });
});

test("mistakes are exit code 2, and a missing service is exit code 1 with how to start it", async () => {
  const run = (environment: Record<string, string>, ...args: string[]) =>
    runStoreCommand(tailCommand, environment, args, { now: NOW });
  const mistaken = await run(
    {},
    "--zone",
    "x",
    "--since",
    "+1h",
    "--filter",
    "nonsense:eq:1",
    "--filter",
    "y",
  );
  expect(mistaken).toMatchObject({ code: 2, out: "" });
  for (const part of ['--zone "x"', '--since "+1h" must be a time in the past', "nonsense", '--filter "y"'])
    expect(mistaken.err).toContain(part);
  const unknown = await run({ DATABASE_URL: database.url }, "--zone", "999");
  expect(unknown).toMatchObject({ code: 2, out: "" });
  const missing = await run({ LONGWATCH_DATA_DIR: "/nonexistent/longwatch" });
  expect(missing).toMatchObject({ code: 1, out: "" });
  expect(missing.err).toMatch(/^longwatch tail: no service runs on .*: run npm start first/);
  const down = await run({ DATABASE_URL: "postgres://127.0.0.1:1/none" });
  expect(down).toMatchObject({ code: 1, out: "" });
  expect(down.err).toContain("Postgres at 127.0.0.1:1 cannot be reached");
});

test("a read that fails halfway through a page costs no event and repeats none", async () => {
  const stored = Array.from({ length: 25 }, (_, n) => ({ logId: `e${n}`, occurredAt: NOW + n * 1_000 }));
  let reads = 0;
  const follower = createFollower<(typeof stored)[number]>([1, 2], NOW);
  const got: string[] = [];
  for (let poll = 0; poll < 10; poll += 1) {
    try {
      for await (const { zoneId, event: one } of follower.poll((id, from, after) => {
        if ([3, 6, 11, 14].includes(++reads)) throw new Error("gone");
        const begin = after === null ? 0 : stored.indexOf(after) + 1;
        const rest = stored.slice(begin).filter(({ occurredAt }) => occurredAt >= from && id > 0);
        return Promise.resolve(rest.slice(0, 3));
      }))
        got.push(`${zoneId} ${one.logId}`);
    } catch {
      // The next poll goes on.
    }
  }
  expect(new Set(got).size).toBe(50);
  expect(got).toHaveLength(50);
  expect(OVERLAP_MS).toBeGreaterThan(25_000);
});

test("a filter takes the word of the screen, and one that can never match is a mistake instead of a silent wait", async () => {
  // Before the last minute, which other tests print of all zones.
  const [zone, at] = [103, NOW - 7_200_000];
  await store(zone, event("seen", at, { url: "https://h/a?b" }), event("other", at, { action: "log" }));
  await advanceSearch(database.db, zone, { startsAt: startOfHour(NOW), searchedThrough: NOW });
  const filters = ["--filter", "action:eq:blocked", "--filter", "path:not-eq:/c"];
  const tail = startTail(["--zone", String(zone), "--since", "-3h", "--json", ...filters]);
  await tail.until("out", "seen");
  const { out } = await tail.stop();
  expect(out).not.toContain("other");
  for (const [filter, rule] of [
    ["action:eq:stopped", "must be block (or blocked)"],
    ["method:eq:POST", "the method is in the record of an event"],
  ]) {
    const refused = await runStoreCommand(
      tailCommand,
      { DATABASE_URL: database.url },
      ["--filter", filter ?? ""],
      {
        now: NOW,
      },
    );
    expect(refused).toMatchObject({ code: 2, out: "" });
    expect(refused.err).toContain(rule);
  }
});
