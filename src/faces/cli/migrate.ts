import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import { migrate } from "#db/migrate.ts";
import { refuseServer } from "#db/postgres/server.ts";
import { UsageError } from "#lib/errors.ts";
import { createProcessIo, writeOut } from "./edge/edge-io.ts";
import { writeJson } from "./edge/write-json.ts";
import { type StoreIo, storeAction, storeCommand } from "./store/store-command.ts";
import { SUMMARIES } from "./summaries.ts";

const HELP = `
Brings the tables of DATABASE_URL to this version, creates nothing else, and ends. Changes nothing if the tables are of this
version; then the role needs no right to create tables. Refuses a database of a newer version, and one that is too old: the
error names the version to start first. Each process of the service does the same when it starts: the command lets a role
with more rights do it before the service starts.

Examples:
  npm run -s longwatch -- migrate
  DATABASE_URL=postgres://owner@db/longwatch npm run -s longwatch -- migrate`;

/** `longwatch migrate`: brings a database to this version's schema. */
export function migrateCommand(readConfig: () => Config, io: StoreIo = createProcessIo()): Command {
  return storeCommand("migrate", SUMMARIES.migrate, HELP, io)
    .option("--json", "print JSON")
    .action(
      storeAction<{ readonly json?: true }>(io, async (flags, read) => {
        read.finish();
        const { databaseUrl } = readConfig();
        if (databaseUrl === null)
          throw new UsageError(["DATABASE_URL: not set; `start` migrates the embedded Postgres by itself"]);
        await refuseServer(databaseUrl.reveal());
        await migrate({ url: databaseUrl.reveal() });
        if (flags.json === true) await writeJson(io.stdout, { version: readVersion() });
        else await writeOut(io.stdout, "The tables are of this version.\n");
      }),
    );
}
