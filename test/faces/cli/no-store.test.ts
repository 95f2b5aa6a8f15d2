import { existsSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { loadSubject } from "#faces/cli/commands.ts";
import { eraseCommand } from "#faces/cli/erase/erase.ts";
import { exportCommand } from "#faces/cli/export/export.ts";
import { privacyCommand } from "#faces/cli/privacy/privacy.ts";
import { searchCommand } from "#faces/cli/search/search.ts";
import { statusCommand } from "#faces/cli/status/status.ts";
import { createMigratedDatabase } from "../../db/migrated-database.ts";
import { createTestDatabase } from "../../support/database.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { runStoreCommand } from "./run-store-command.ts";

const alertsCommand = await loadSubject("alerts");
const auditCommand = await loadSubject("audit");
const coverageCommand = await loadSubject("coverage");
const deliveriesCommand = await loadSubject("deliveries");
const gapsCommand = await loadSubject("gaps");
const keysCommand = await loadSubject("keys");
const silencesCommand = await loadSubject("silences");

const NOW = Date.UTC(2026, 10, 20, 12);

test.each([
  ["status", statusCommand, []],
  ["coverage", coverageCommand, []],
  ["gaps", gapsCommand, []],
  ["alerts list", alertsCommand, ["list"]],
  ["deliveries list", deliveriesCommand, ["list"]],
  ["silences list", silencesCommand, ["list"]],
  ["keys list", keysCommand, ["list"]],
  ["keys create", keysCommand, ["create", "--name", "x", "--role", "reader"]],
  ["audit list", auditCommand, ["list"]],
  ["search", searchCommand, ["--zone", "101", "--from", "-1h"]],
  ["export", exportCommand, ["--zone", "101", "--from", "-1h"]],
  ["privacy show", privacyCommand, ["show"]],
  ["privacy pseudonym", privacyCommand, ["pseudonym", "--ip", "203.0.113.7"]],
] as const)(
  "%s in a folder without a database creates nothing, starts nothing and says what to do",
  async (_, create, args) => {
    const dataDir = path.join(makeTemporaryFolder("no-store"), "data");
    const ran = await runStoreCommand(create, { LONGWATCH_DATA_DIR: dataDir }, args, { now: NOW });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toContain(`there is no database in ${dataDir}: run npm start first, or set DATABASE_URL`);
    expect(existsSync(dataDir)).toBe(false);
  },
);

test("erase on a database without tables names migrate", async () => {
  const database = await createTestDatabase();
  try {
    const args = ["--ip", "203.0.113.7", "--reason", "asked", "--yes"];
    const ran = await runStoreCommand(eraseCommand, { DATABASE_URL: database.url }, args, { now: NOW });
    expect(ran).toMatchObject({ code: 1, out: "" });
    expect(ran.err).toContain("lacks the tables of this version: run npm run -s longwatch -- migrate");
  } finally {
    await database.drop();
  }
});

test("a command makes no pseudonym key: only the service does, where it keeps the key", async () => {
  const database = await createMigratedDatabase();
  try {
    const dataDir = path.join(makeTemporaryFolder("no-key"), "data");
    const env = { DATABASE_URL: database.url, LONGWATCH_DATA_DIR: dataDir };
    const ran = await runStoreCommand(privacyCommand, env, ["pseudonym", "--ip", "203.0.113.7"], {
      now: NOW,
    });
    expect(ran.code).toBe(1);
    expect(ran.err).toContain("no pseudonym key is in use yet");
    expect(existsSync(dataDir)).toBe(false);
  } finally {
    await database.drop();
  }
});
