import { afterAll, beforeAll, expect, test } from "vitest";
import { viewService } from "#app/view-service.ts";
import { parseConfig } from "#config/config.ts";
import { coverageWindows } from "#db/schema/coverage.ts";
import { channelStates } from "#db/schema/notifications.ts";
import { ruleBuckets } from "#db/schema/rules.ts";
import { requestBudgets } from "#db/schema/service.ts";
import { topCommand } from "#faces/cli/top/top.ts";
import { HOUR_MS } from "#lib/units.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { ask } from "../http/api/api-world.ts";
import { makeKey, startArchive } from "../http/start-archive.ts";
import { openAlertRows } from "./alert-rows.ts";
import { runStoreCommand } from "./run-store-command.ts";

const MINUTE_MS = 60_000;
const NOW = Math.floor(Date.now() / HOUR_MS) * HOUR_MS + 30 * MINUTE_MS;
let database: MigratedDatabase;

/** 40 events a minute for the last ten minutes, and one a minute in the two days before. */
beforeAll(async () => {
  database = await createMigratedDatabase();
  const { db } = database;
  const one = { zoneId: 101, ruleId: "942100" };
  const minutes = Array.from({ length: 10 }, (_, ago) => ({
    ...one,
    width: 60,
    startsAt: new Date(NOW - ago * MINUTE_MS),
    total: 40,
    blocked: 40,
  }));
  const hours = Array.from({ length: 48 }, (_, ago) => ({
    ...one,
    width: 3_600,
    startsAt: new Date(NOW - 30 * MINUTE_MS - (ago + 2) * HOUR_MS),
    total: 60,
    blocked: 60,
  }));
  await db.insert(ruleBuckets).values([...minutes, ...hours]);
  await db.insert(coverageWindows).values(
    hours.map(({ startsAt }) => {
      const end = new Date(startsAt.getTime() + HOUR_MS);
      return {
        zoneId: 101,
        startsAt,
        searchedThrough: end,
        state: "sealed" as const,
        sealedAt: end,
        evidence: {},
      };
    }),
  );
  await db.insert(coverageWindows).values({
    zoneId: 101,
    startsAt: new Date(NOW - 30 * MINUTE_MS),
    searchedThrough: new Date(NOW - 7_000),
  });
  await db.insert(requestBudgets).values({ name: "edge", tokens: 3, refilledAt: new Date() });
  await db.insert(channelStates).values({ channel: "slack", state: "disabled" });
  await openAlertRows(database).fire();
});

afterAll(() => database.drop());

const run = (
  args: readonly string[],
  environment: Record<string, string> = { DATABASE_URL: database.url },
  isTTY = false,
) => runStoreCommand(topCommand, environment, args, { now: NOW, isTTY });

test("in a pipe it prints once, without colour and within 80 columns", async () => {
  const { code, out, err } = await run([]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/^longwatch top {3}\d{4}-\d\d-\d\d \d\d:\d\d UTC {3}requests: \d+ left now, \d+\/s\n/);
  expect(out).toMatch(/\n101 +40 +360 +7 s +\S+( h)? +\d+ +▁+█+\n/);
  expect(out).toMatch(/\nFIRING +SEVERITY +AGE +HEADLINE\n#\d+ /);
  expect(out).toMatch(/\n942100 +101 +6\.0 +1\.0 +x6\.\d +▁+█+ +SQL/);
  expect(out).toContain("\nNeeds attention");
  expect(out).toContain("  Channel slack does not deliver");
  expect(out).not.toContain("\u001b");
  const tables = out.split("\nFIRING")[0] ?? "";
  expect(Math.max(...tables.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
});

test("the only critical alert is shown, however many newer ones fire, and a muted one says so", async () => {
  const rows = openAlertRows(database);
  const critical = await rows.fire({ ruleId: "930100", severity: "critical" });
  // Fewer at once than are grouped.
  for (let n = 0; n < 10; n++) await rows.fire({ ruleId: `9320${n + 10}` });
  await rows.silence({ rule: ["930100"] }, 60 * 24 * 365);
  const { out } = await run([]);
  expect(out).toMatch(/\d+ more: npm run -s longwatch -- alerts list/);
  expect(out).toMatch(new RegExp(`FIRING .*\\n#${critical} +critical, silenced +`));
});

test("as JSON it answers as GET /api/v1/overview does", async () => {
  const answer = JSON.parse((await run(["--json", "--zone", "101"])).out) as object;
  const { key } = await makeKey(database, "reader");
  const { url } = await startArchive(database.url);
  expect(Object.keys(answer)).toEqual(Object.keys(await ask(url, "/api/v1/overview", key)));
  expect(answer).toMatchObject({ zones: [{ id: 101 }], rules: [{ ruleId: "942100", perMinute: 6 }] });
});

test("top shows the same of a service elsewhere, and refuses an unknown zone", async () => {
  const { key } = await makeKey(database, "reader");
  const service = viewService(parseConfig({ DATABASE_URL: database.url }));
  const { url } = await startArchive(database.url, {}, { clock: () => NOW, service });
  const environment = { LONGWATCH_URL: url, LONGWATCH_KEY: key };
  for (const args of [[], ["--zone", "101"]]) {
    // The request budget fills up again between the two.
    const ask = async (given?: Record<string, string>) => {
      const shown = await run(args, given);
      return { ...shown, out: shown.out.replace(/requests: \d+ left now/, "requests: left now") };
    };
    const here = await ask();
    expect(here).toMatchObject({ code: 0, err: "" });
    expect(await ask(environment)).toEqual(here);
  }
  // The hours to loss are those of each answer's own time.
  const asJson = async (given?: Record<string, string>) =>
    JSON.parse((await run(["--json", "--zone", "101"], given)).out, (name, value: unknown) =>
      name === "hoursToLoss" ? Math.round(Number(value)) : value,
    ) as object;
  const { now: _now, ...known } = (await asJson()) as { now: string };
  expect(await asJson(environment)).toMatchObject(known);
  const unknown = await run(["--zone", "999"], environment);
  expect(unknown).toMatchObject({ code: 2, out: "" });
  expect(unknown.err).toContain(
    'zone "999" must be a shield zone that is configured or has stored data (101)',
  );
});

test.each(["here", "elsewhere"])(
  "on a terminal it refreshes in place until Ctrl-C, and then gives the screen back: %s",
  async (where) => {
    const stop = new AbortController();
    const create: typeof topCommand = (readConfig, io) => {
      if (io === undefined) throw new Error("no streams");
      let frames = 0;
      const write = io.stdout.write.bind(io.stdout);
      io.stdout.write = ((chunk: string) => {
        if (chunk.includes("\u001b[H") && ++frames === 2) stop.abort();
        return write(chunk);
      }) as typeof write;
      const stdout = Object.assign(io.stdout, { columns: 60, rows: 10 });
      return topCommand(readConfig, { ...io, stdout, interrupted: stop.signal });
    };
    const { url } = await startArchive(database.url, {}, { clock: () => NOW });
    const { key } = await makeKey(database, "reader");
    const environment: Record<string, string> =
      where === "here" ? { DATABASE_URL: database.url } : { LONGWATCH_URL: url, LONGWATCH_KEY: key };
    const { code, out, err } = await runStoreCommand(create, environment, ["--every", "1"], {
      now: NOW,
      isTTY: true,
    });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out.startsWith("\u001b[?1049h\u001b[?25l\u001b[H")).toBe(true);
    expect(out.endsWith("\u001b[?25h\u001b[?1049l")).toBe(true);
    const frames = out.split("\u001b[H").slice(1);
    expect(frames).toHaveLength(2);
    for (const line of frames[0]?.split("\r\n") ?? []) {
      // oxlint-disable-next-line no-control-regex -- what a terminal does not show
      expect(line.replaceAll(/\u001b\[[\d;?]*[A-Za-z]/g, "").length).toBeLessThanOrEqual(60);
    }
    expect(frames[0]?.split("\r\n").length).toBeLessThanOrEqual(10);
  },
);

test("on a terminal the key q ends it as Ctrl-C does", async () => {
  const environment = { DATABASE_URL: database.url };
  const ran = await runStoreCommand(topCommand, environment, [], { now: NOW, isTTY: true, typed: "q" });
  expect(ran).toMatchObject({ code: 0, err: "" });
});

test("mistakes are exit code 2, and a missing service is exit code 1 with how to start it", async () => {
  const mistaken = await run(["--every", "0", "--zone", "x"]);
  expect(mistaken).toMatchObject({ code: 2, out: "" });
  expect(mistaken.err).toContain('--every "0" must be whole seconds from 1 to 3600');
  const unknown = await run(["--zone", "999"]);
  expect(unknown).toMatchObject({ code: 2, out: "" });
  const nowhere = { LONGWATCH_DATA_DIR: "/nonexistent/longwatch" };
  for (const isTTY of [true, false]) {
    const missing = await run([], nowhere, isTTY);
    expect(missing).toMatchObject({ code: 1, out: "" });
    expect(missing.err).toMatch(
      /^longwatch top: .*\/nonexistent\/longwatch: run npm start first, or set DATABASE_URL/,
    );
  }
});
