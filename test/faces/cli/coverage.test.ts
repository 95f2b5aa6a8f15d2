import { expect, onTestFinished, test } from "vitest";
import { writeHorizon } from "#db/proof/horizons.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { HOUR_MS } from "#lib/units.ts";
import { shareDatabase } from "../../db/migrated-database.ts";
import { createTestDatabase } from "../../support/database.ts";
import { testBothWays } from "./both-ways.ts";
import { insertHours, insertStory, NOW, SEALED } from "./coverage-world.ts";
import { runStoreCommand } from "./run-store-command.ts";

const coverageCommand = await loadSubject("coverage");

const database = await shareDatabase();

const testWays = testBothWays(coverageCommand, () => ({ database, now: NOW }));

testWays(
  "it draws a row per day, from the first known hour to the end of today, and says what can still be lost",
  async ({ run }) => {
    await insertStory(database);
    await insertHours(database, Date.UTC(2026, 10, 20, 0), 14, SEALED, 102);
    const { code, out, err } = await run();
    expect(err).toBe("");
    await expect(out).toMatchFileSnapshot("golden/coverage.txt");
    expect(code).toBe(3);
  },
);

testWays("the exit code is 3 if an hour of the span is lost, else 0", async ({ run }) => {
  await insertStory(database);
  expect(await run("--from", "2026-11-18", "--to", "now")).toMatchObject({ code: 0 });
  expect(await run("--from", "2026-11-17T05:00", "--to", "2026-11-17T06:00")).toMatchObject({ code: 3 });
  // Other commands name the ends of a span like this.
  expect(await run("--since=2026-11-18", "--until", "now")).toMatchObject({ code: 0 });
});

testWays("an hour that expired while no service ran is lost, recorded or not", async ({ run }) => {
  // The hour after the first known one would be unwatched, because it expires within an hour.
  await insertHours(database, NOW - (NOW % HOUR_MS) - 81 * HOUR_MS, 2, SEALED);
  const { code, out } = await run("--json", "--to", "now");
  expect(code).toBe(3);
  const { items } = JSON.parse(out) as {
    items: { state: string; gapReason: string }[];
  };
  // 79 to 73 hours ago: the seven that the platform has forgotten whole.
  const counts = Object.entries(Object.groupBy(items, ({ state }) => state));
  expect(counts.map(([state, hours]) => [state, hours?.length])).toEqual([
    ["sealed", 2],
    ["gap", 7],
    ["open", 73],
  ]);
  expect(items[2]?.gapReason).toContain("Longwatch has not recorded this gap yet");
});

testWays(
  "coverage reports a platform that keeps 48 hours, and counts the hours to loss from that",
  async ({ run }) => {
    await insertStory(database);
    const since = Date.UTC(2026, 10, 20, 2);
    const horizon = { keptMs: 48 * HOUR_MS, since, beforeMs: 72 * HOUR_MS };
    await writeHorizon(database.db, 101, horizon, since);
    const { out } = await run();
    expect(out).toContain("next to expire: 2026-11-20 08:00 UTC, 40.8 hours to loss\n");
    expect(out).toContain("The platform has kept events for only 2 d since 2026-11-20 02:00 UTC.\n");
    expect(JSON.parse((await run("--json")).out)).toMatchObject({
      horizons: [{ zoneId: 101, keptHours: 48, since: "2026-11-20T02:00:00.000Z" }],
    });
  },
);

testWays("colours are for terminals that want them", async ({ run, runOn }) => {
  await insertStory(database);
  const green = "\u001b[32m█";
  expect((await runOn({ isTTY: true })).out).toContain(green);
  // What a terminal's stream says where NO_COLOR is set.
  expect((await runOn({ isTTY: true, hasColors: false })).out).not.toContain("\u001b");
  expect((await run()).out).not.toContain("\u001b");
});

testWays.both(
  "as JSON every hour comes with state, counts and evidence, as the API has them",
  async ({ run }) => {
    await insertStory(database);
    const { out } = await run(
      "--zone",
      "101",
      "--from",
      "2026-11-17T05:00Z",
      "--to",
      "2026-11-17T07:00Z",
      "--json",
    );
    expect(out).not.toContain("\u202e");
    // Times are ISO 8601 text everywhere.
    expect(out).not.toMatch(/\b1[67]\d{11}\b/);
    expect(JSON.parse(out)).toMatchObject({
      from: "2026-11-17T05:00:00.000Z",
      to: "2026-11-17T07:00:00.000Z",
      items: [
        {
          zoneId: 101,
          startsAt: "2026-11-17T05:00:00.000Z",
          state: "gap",
          gapReason: "counts differed: \u001b[2J\u202e3 events missing",
          storedCount: 3,
          upstreamCount: 6,
        },
        {
          startsAt: "2026-11-17T06:00:00.000Z",
          state: "sealed",
          sealedAt: "2026-11-20T15:10:00.000Z",
          evidence: { list: "quiet", search: "closed", reconcile: 100 },
        },
      ],
      next: null,
      zones: [
        {
          zoneId: 101,
          name: null,
          firstHour: "2026-11-15T21:00:00.000Z",
          nextToExpire: { startsAt: "2026-11-20T08:00:00.000Z", expiresAt: "2026-11-23T07:58:00.000Z" },
          suspicions: [],
        },
      ],
    });
  },
);

test("all mistakes are listed at once and the database is not queried", async () => {
  const terminal = { now: NOW };
  const args = ["--zone", "x", "--from", "soon\u001b[2J", "--to", "12", "--color"];
  const { code, out, err } = await runStoreCommand(
    coverageCommand,
    { DATABASE_URL: "nonsense" },
    args,
    terminal,
  );
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain("4 mistakes");
  for (const named of [
    '"--color" is not',
    '--zone "x" must be',
    '--from "soon\\u001b[2J" must be',
    '--to "12" must be',
  ])
    expect(err).toContain(named);
  expect(err).not.toContain("\u001b");
});

testWays.both("a wrong time range is refused with the times as they were typed", async ({ run }) => {
  expect(await run("--from", "-1h", "--to", "-2h")).toMatchObject({
    code: 2,
    err: expect.stringContaining('--to "-2h" must be after from, 2026-11-20T14:10:00.000Z'),
  });
  expect(await run("--from", "-801d")).toMatchObject({
    code: 2,
    err: expect.stringContaining(
      '--from "-801d" must be at most 800 days before to, but is 802 days before it',
    ),
  });
});

testWays.both(
  "a span of more hours than a page has is drawn and read whole, with each zone once",
  async ({ run }) => {
    await insertHours(database, Date.UTC(2026, 7, 22), 24 * 90, SEALED);
    await insertHours(database, Date.UTC(2026, 10, 20), 14, SEALED, 102);
    const { out } = await run("--from", "-100d");
    expect(out).toContain("2160 sealed");
    expect((await run("--from", "-100d", "--to", "2286-01-01")).out).toBe(out);
    expect(out).toContain(`2026-08-22  ${"█".repeat(24)}\n`);
    expect(out.split("\n").filter((line) => line.startsWith("2026-"))).toHaveLength(91 + 1);
    const { items, zones, next } = JSON.parse((await run("--from", "-100d", "--json")).out) as {
      items: object[];
      zones: { zoneId: number }[];
      next: null;
    };
    expect(items).toHaveLength(24 * 91 + 24);
    expect(zones.map(({ zoneId }) => zoneId)).toEqual([101, 102]);
    expect(next).toBeNull();
  },
);

test("where nothing is stored it says so, and what to do", async () => {
  const configured = {
    DATABASE_URL: database.url,
    EDGE_API_URL: "http://127.0.0.1:9",
    EDGE_API_KEY: "key",
    EDGE_SHIELD_ZONES: "7",
  };
  expect(await runStoreCommand(coverageCommand, configured, ["--zone", "7"], { now: NOW })).toEqual({
    code: 0,
    out: "No data is stored for zone 7 yet: run npm start.\n",
    err: "",
  });
  const empty = await createTestDatabase();
  onTestFinished(() => empty.drop());
  const ran = await runStoreCommand(coverageCommand, { DATABASE_URL: empty.url }, [], { now: NOW });
  expect(ran).toMatchObject({ code: 1, err: expect.stringContaining("start the service once") });
});

testWays("it explains itself with examples", async ({ run }) => {
  const { code, out } = await run("--help");
  expect(code).toBe(0);
  expect(out.replaceAll("\n", " ")).toContain("3 if the span has a gap.");
  expect(out).toContain("Examples:\n  npm run -s longwatch -- coverage");
});
