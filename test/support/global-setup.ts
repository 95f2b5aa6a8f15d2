import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import type { TestProject } from "vitest/node";
import { migrate } from "#db/migrate.ts";
import { startEmbeddedPostgres } from "#store/embedded/postgres.ts";
import { createRunFolder } from "./run-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Superuser connection string of a running Postgres 18, over a socket of the file system: `overTcp` gives the other. */
    postgresUrl: string;
    /** Name of a database with this version's schema and nothing else. Nothing connects to it. */
    migratedTemplate: string;
  }
}

/**
 * Provides one Postgres for the whole run: the server of TEST_DATABASE_URL (of a superuser), else an embedded one without
 * durability, because only crash tests need that and they start their own.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const runFolder = createRunFolder();
  // The folder of all temporary files from here on. Workers and their processes inherit it.
  process.env["TMPDIR"] = runFolder;
  const postgres = await openPostgres(runFolder);
  project.provide("postgresUrl", postgres.url);
  project.provide("migratedTemplate", await createTemplate(postgres.url));
  return async () => {
    await postgres.stop();
    rmSync(runFolder, { recursive: true, force: true });
  };
}

async function openPostgres(runFolder: string) {
  const url = process.env["TEST_DATABASE_URL"];
  if (url !== undefined) return { url, stop: async () => undefined };
  // Deriving a key from the password is half of the cost of a connection, and the tests open thousands. Tests of
  // passwords start their own server.
  const access = path.join(runFolder, "pg_hba.conf");
  writeFileSync(access, "host all all 127.0.0.1/32 trust\nlocal all all trust\n");
  // A statement over a socket of the file system costs both sides together a third of one over TCP.
  const sockets = path.join(runFolder, "sockets");
  mkdirSync(sockets);
  // If root runs the tests, Postgres runs as another user, which makes a file there.
  chmodSync(sockets, 0o777);
  // For each of the hundreds of databases, autovacuum would start a process a minute.
  const settings = ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off"];
  const server = await startEmbeddedPostgres({
    dataDir: path.join(runFolder, "postgres"),
    settings: [
      ...settings,
      "max_connections=200",
      `hba_file=${access}`,
      `unix_socket_directories=${sockets}`,
    ],
  });
  const overSocket = new URL(server.url);
  overSocket.searchParams.set("host", sockets);
  return { ...server, url: overSocket.href };
}

/** Migrates a template once per run, because copying it takes a tenth of the time. */
async function createTemplate(postgresUrl: string): Promise<string> {
  const name = "migrated_template";
  const client = new pg.Client({ connectionString: postgresUrl });
  await client.connect();
  try {
    await client.query(`DROP DATABASE IF EXISTS ${name}`);
    await client.query(`CREATE DATABASE ${name}`);
  } finally {
    await client.end();
  }
  const url = new URL(postgresUrl);
  url.pathname = `/${name}`;
  await migrate({ url: url.href });
  return name;
}
