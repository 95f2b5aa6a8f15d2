import { afterAll, beforeAll, expect, test } from "vitest";
import { auditEntries } from "#db/schema/audit-entries.ts";
import { knownCommand } from "#faces/cli/known/known.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../db/migrated-database.ts";
import { runStoreCommand } from "./run-store-command.ts";

const NOW = Date.UTC(2026, 10, 20, 15, 30);
let database: MigratedDatabase;

beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());

function run(...args: string[]) {
  return runStoreCommand(knownCommand, { DATABASE_URL: database.url }, args, { now: NOW });
}

test("a known source is added, listed, removed and audited with a masked address", async () => {
  const added = await run(
    "add",
    "--ip",
    "198.51.100.7",
    "--ua",
    "Pingdom*",
    "--reason",
    "ours",
    "--by",
    "ann",
  );
  expect(added.out).toBe("known source #1 (ip) is added.\nknown source #2 (ua) is added.\n");
  expect((await run("list")).out).toMatch(/#1 +ip +198\.51\.100\.7 +all +- +ann +ours/);
  expect((await run("remove", "#1", "--by", "ann")).out).toBe("known source #1 is removed.\n");
  expect(await run("remove", "1")).toMatchObject({
    code: 1,
    err: expect.stringContaining("no known source 1"),
  });
  const { items } = JSON.parse((await run("list", "--json")).out) as { items: unknown[] };
  expect(items).toEqual([
    { id: 2, kind: "ua", pattern: "Pingdom*", zoneIds: null, reason: "ours", until: null, createdBy: "ann" },
  ]);
  const audit = await database.db.select().from(auditEntries).orderBy(auditEntries.id);
  expect(audit.map(({ action }) => action)).toEqual([
    "known-source.added",
    "known-source.added",
    "known-source.removed",
  ]);
  expect(JSON.stringify(audit)).not.toContain("198.51.100.7");
});

test("every mistake is named, and nothing is stored", async () => {
  const { code, err } = await run("add", "--ip", "shop.example", "--until", "2020-01-01");
  expect(code).toBe(2);
  for (const text of ["--ip", "--until", "--reason"]) expect(err).toContain(text);
  expect((await run("add", "--reason", "x")).err).toContain("--ip, --asn, --ja4 or --ua must be given");
});
