import { writeFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parseConfig, parseServiceConfig } from "#config/config.ts";
import { readDatabaseUrl } from "#config/read-database-url.ts";
import { reportExcessRights } from "#health/doctor/report-excess-rights.ts";
import { createLog } from "#lib/log.ts";
import { createSecret } from "#lib/secret.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { createSelfSigned } from "../delivery/support/self-signed.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const urlWith = (parameters: string) => `postgres://user:canary@db.example.test:5432/app?${parameters}`;

function mistakeOf(env: Record<string, string>): string {
  try {
    parseServiceConfig(env);
    return "";
  } catch (thrown) {
    return (thrown as Error).message;
  }
}

test.each([
  ["sslmode=verfy-full", 'DATABASE_URL: sslmode="verfy-full": must be one of '],
  ["sslmode=disable&sslmode=", 'DATABASE_URL: sslmode="": must be one of '],
  [
    "sslmode=verify-full&sslrootcert=/none.pem",
    'sslrootcert="/none.pem": must be a file of certificates in PEM',
  ],
  [`sslrootcert=${import.meta.filename}`, "must be a file of certificates in PEM"],
  ["sslcert=/none.pem", 'sslcert="/none.pem": must be a readable file'],
  ["sslkey=/none.pem", 'sslkey="/none.pem": must be a readable file'],
])("S21: %s in DATABASE_URL is a mistake before anything is connected to", (parameters, mistake) => {
  const said = mistakeOf({ DATABASE_URL: urlWith(parameters) });
  expect(said).toContain(mistake);
  expect(said).not.toContain("canary");
});

test("S21: sslrootcert=system means the authorities that Node knows, and that the name is checked", () => {
  const read = readDatabaseUrl(urlWith("sslrootcert=system"));
  expect(read).toEqual({ url: urlWith("sslmode=verify-full") });
});

test("an address that says nothing of TLS, and one through a socket, stay as they are", () => {
  for (const url of ["postgres://user@db/app", "postgresql:///app?host=%2Fvar%2Frun%2Fpostgresql"])
    expect(parseConfig({ DATABASE_URL: url }).databaseUrl?.reveal()).toBe(url);
});

test("S21: LONGWATCH_REDIS_CA has to be certificates, and there has to be a Redis", () => {
  const folder = makeTemporaryFolder("ca");
  const ca = path.join(folder, "ca.pem");
  writeFileSync(ca, createSelfSigned("localhost").cert);
  expect(mistakeOf({ REDIS_URL: "rediss://r", LONGWATCH_REDIS_CA: ca })).toBe("");
  expect(mistakeOf({ REDIS_URL: "rediss://r", LONGWATCH_REDIS_CA: folder })).toBe(
    `LONGWATCH_REDIS_CA: "${folder}": must be a file of certificates in PEM`,
  );
  expect(mistakeOf({ LONGWATCH_REDIS_CA: ca })).toBe(
    "REDIS_URL: not set: must be set when LONGWATCH_REDIS_CA is",
  );
});

test("S21: a start that takes any server's certificate says so", async () => {
  const database = await createMigratedDatabase();
  const lines: string[] = [];
  const log = createLog({ level: "info", stream: { write: (line) => lines.push(line) } });
  const start = async (parameters: string) => {
    lines.length = 0;
    const databaseUrl = createSecret(urlWith(parameters));
    await reportExcessRights(database, { databaseUrl, redisUrl: null, roles: ["ingest"] }, log);
    return lines.join("");
  };
  try {
    for (const lenient of [
      "sslmode=no-verify",
      "ssl=no-verify",
      "sslmode=require&uselibpqcompat=true",
      "sslmode=prefer&uselibpqcompat=true",
    ])
      expect(await start(lenient)).toContain("its certificate is not checked");
    for (const strict of [
      "sslmode=verify-full",
      "sslmode=disable",
      "",
      "sslmode=verify-ca&uselibpqcompat=true",
    ])
      expect(await start(strict)).not.toContain("its certificate is not checked");
  } finally {
    await database.drop();
  }
});
