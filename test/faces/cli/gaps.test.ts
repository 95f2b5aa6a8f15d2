import { expect } from "vitest";
import { loadSubject } from "#faces/cli/commands.ts";
import { shareDatabase } from "../../db/migrated-database.ts";
import { testBothWays } from "./both-ways.ts";
import { insertHours, insertStory, NOW, SEALED } from "./coverage-world.ts";

const gapsCommand = await loadSubject("gaps");

const database = await shareDatabase();

const testWays = testBothWays(gapsCommand, () => ({ database, now: NOW }));

testWays.both(
  "each gap is listed with its bounds, hours, counts and reason, harmless to a terminal",
  async ({ run }) => {
    await insertStory(database);
    await insertHours(database, Date.UTC(2026, 10, 20, 0), 15, SEALED, 102);
    expect(await run("--to", "now")).toEqual({
      code: 3,
      err: "",
      out: [
        "zone 101: 1 gap, 5 hours, from 2026-11-15 21:00 to 2026-11-20 15:10 UTC",
        "  2026-11-17 01:00 to 2026-11-17 06:00 UTC   5 hours, 15 events stored, the platform last counted 30",
        "    counts differed: \\u{1b}[2J\\u{202e}3 events missing",
        "zone 102: no gap from 2026-11-20 00:00 to 2026-11-20 15:10 UTC.",
        "",
      ].join("\n"),
    });
  },
);

testWays("as JSON a gap keeps its reasons as they are", async ({ run }) => {
  await insertStory(database);
  const { code, out } = await run("--json", "--from", "2026-11-17");
  expect(code).toBe(3);
  expect(out).not.toContain("\u202e");
  expect(JSON.parse(out)).toMatchObject({
    items: [
      {
        zoneId: 101,
        from: "2026-11-17T01:00:00.000Z",
        to: "2026-11-17T06:00:00.000Z",
        hours: 5,
        storedCount: 15,
        upstreamCount: 30,
        reasons: ["counts differed: \u001b[2J\u202e3 events missing"],
      },
    ],
    next: null,
  });
});

testWays("without a gap in the span it says so in a sentence, with exit code 0", async ({ run }) => {
  await insertStory(database);
  expect(await run("--zone", "101", "--from", "2026-11-18", "--to", "2026-11-19")).toEqual({
    code: 0,
    err: "",
    out: "zone 101: no gap from 2026-11-18 00:00 to 2026-11-19 00:00 UTC.\n",
  });
});

testWays("every mistake is reported at once", async ({ run }) => {
  const { code, err } = await run("--zone", "-1", "--from", "someday", "all");
  expect(code).toBe(2);
  for (const named of ['"all" is not', '--zone "-1" must be', '--from "someday" must be'])
    expect(err).toContain(named);
});

testWays("it explains itself with examples", async ({ run }) => {
  const { code, out } = await run("--help");
  expect(code).toBe(0);
  expect(out).toContain("Examples:\n  npm run -s longwatch -- gaps");
});
