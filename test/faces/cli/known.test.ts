import { afterAll, beforeAll, expect } from "vitest";
import { auditEntries } from "#db/schema/people.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";
import { testBothWays } from "./both-ways.ts";
import { clearAudit } from "./clear-audit.ts";

const knownCommand = await loadSubject("known");

const NOW = Date.UTC(2026, 10, 20, 15, 30);
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());

const testWays = testBothWays(knownCommand, () => ({ database, now: NOW }));

testWays.both(
  "a known source is added, listed, removed and audited with a masked address",
  async ({ run, by }) => {
    await clearAudit(database);
    const added = await run("add", "--ip", "198.51.100.7", "--reason", "ours", ...by("ann"));
    const [, id = ""] = /^known source #(\d+) \(ip\) is added\.\n$/.exec(added.out) ?? [];
    expect((await run("add", "--ua", "Pingdom*", "--reason", "ours", ...by("ann"))).out).toContain(
      "(ua) is added",
    );
    expect((await run("list")).out).toMatch(/#\d+ +ip +198\.51\.100\.7 +all +- +ann +ours/);
    expect((await run("remove", `#${id}`, ...by("ann"))).out).toBe(`known source #${id} is removed.\n`);
    expect(await run("remove", id)).toMatchObject({
      code: 1,
      err: expect.stringContaining(`no known source ${id}`),
    });
    const { items } = JSON.parse((await run("list", "--json")).out) as { items: { id: number }[] };
    const shown = {
      kind: "ua",
      pattern: "Pingdom*",
      zoneIds: null,
      reason: "ours",
      until: null,
      createdBy: "ann",
    };
    expect(items).toEqual([{ ...shown, id: expect.any(Number) }]);
    await run("remove", String(items[0]?.id));
    const audit = await database.db.select().from(auditEntries).orderBy(auditEntries.id);
    expect(audit.map(({ action }) => action).filter((action) => action.startsWith("known"))).toEqual([
      "known-source.added",
      "known-source.added",
      "known-source.removed",
      "known-source.removed",
    ]);
    expect(JSON.stringify(audit)).not.toContain("198.51.100.7");
  },
);

testWays("every mistake is named, and nothing is stored", async ({ run }) => {
  const { code, err } = await run("add", "--ip", "shop.example", "--until", "soon");
  expect(code).toBe(2);
  for (const text of ["--ip", "--until", "--reason"]) expect(err).toContain(text);
  const past = await run("add", "--ip", "198.51.100.7", "--reason", "ours", "--until", "2020-01-01");
  expect(past).toMatchObject({ code: 2, err: expect.stringContaining("--until") });
  expect((await run("add", "--reason", "x")).err).toContain("--ip must be given, or one of asn, ja4 and ua");
  expect((await run("list")).out).toBe("No known sources.\n");
});
