/** The commands that migrate the database and back it up. */
import { existsSync } from "node:fs";
import path from "node:path";
import type { Command } from "commander";
import type { Config } from "#config/config.ts";
import { readVersion } from "#config/read-version.ts";
import { migrate } from "#db/migrate.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { refuseServer } from "#db/postgres/server.ts";
import { type BackupManifest, countArchiveFiles, countRows } from "#health/backup/open-backup.ts";
import { writeBackup } from "#health/backup/write-backup.ts";
import { formatBytes } from "#lib/disk.ts";
import { UsageError } from "#lib/errors.ts";
import { many, showTime } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { escapeText } from "#lib/text.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { createProcessIo, writeJson, writeOut } from "./edge/edge-io.ts";
import type { FlagReader } from "./edge/flag-reader.ts";
import { readActor } from "./options/read-options.ts";
import { BY, defineTask, onStore } from "./store/define-task.ts";
import { type StoreIo, storeAction, storeCommand } from "./store/store-command.ts";

const BACKUP_HELP = `
Writes one snapshot of the database and the files of the archive into one tar file. The service may run. No other program is
needed. longwatch restore puts the file into an empty database of Postgres 15 or newer, embedded or not. The file gets its
name when it is complete; an existing file is never replaced. Only its user may read it: it holds visitors' addresses and
hashes of keys. It does not hold the pseudonym key, which must be kept in another place, nor sign-ins, nor the job queue.
Files of the archive that are in a bucket stay there; the backup names them.

Examples:
  npm run -s longwatch -- backup --out /backups/2026-11-22.tar
  npm run -s longwatch -- backup --out /backups/2026-11-22.tar --without-archive
  npm run -s longwatch -- backup --out /backups/2026-11-22.tar --json`;

/** `longwatch backup`: writes the database and the archive into one file. */
export const backupCommand = defineTask({
  name: "backup",
  help: BACKUP_HELP,
  options: {
    "--out <file>": "write this new file (required)",
    "--without-archive": "only name the files of the archive, which are backed up another way",
    ...BY,
  },
  read: (flags, read) => ({
    file: readTarget(read, flags.out),
    actor: readActor(read, flags.by),
    withArchive: flags.withoutArchive !== true,
  }),
  async run({ file, actor, withArchive }, io, readConfig) {
    const config = readConfig();
    const { manifest, bytes } = await onStore(io, config, async ({ database, onProgress, signal }) => {
      const details = { file: path.basename(file), archive: withArchive };
      await writeAuditEntry(database.db, { actor, action: "backup.made", subject: "database", details });
      const folder = createFolderStorage(config.archive.folder);
      return writeBackup({ database, folder, withArchive, file, onProgress, signal });
    });
    const facts = { file, bytes, ...summarise(manifest) };
    return { facts, text: describe(facts, config) };
  },
});

function readTarget(read: FlagReader, out: string | undefined): string {
  const file = path.resolve(out ?? "");
  if (out === undefined || existsSync(file) || !existsSync(path.dirname(file)))
    read.wrong("out", out, "a new file in a folder that exists");
  return file;
}

/** Returns what a person wants to know of a backup. */
export function summarise(manifest: BackupManifest) {
  const { version, takenAt, postgres, tables, archive, pseudonymKeyId } = manifest;
  return {
    version,
    takenAt,
    postgres,
    tables: tables.length,
    rows: countRows(manifest),
    archiveFiles: countArchiveFiles(manifest),
    archiveFilesOutside: archive.outside.length,
    pseudonymKeyId,
  };
}

function describe(
  facts: ReturnType<typeof summarise> & { readonly file: string; readonly bytes: number },
  { pseudonymKey, keyDir }: Config,
): string {
  const { file, bytes, takenAt, rows, archiveFiles, archiveFilesOutside, pseudonymKeyId } = facts;
  const at = `${showTime(takenAt)} UTC`;
  const key =
    pseudonymKey === null ? `the file ${path.join(keyDir, "pseudonym.key")}` : "LONGWATCH_PSEUDONYM_KEY";
  const lines = [
    `Wrote ${escapeText(file)}: ${many(rows, "row")} as of ${at}, ${many(archiveFiles, "file")} of the archive, ${formatBytes(bytes)}.`,
    ...(archiveFilesOutside === 0
      ? []
      : [
          `Not in it: ${many(archiveFilesOutside, "file")} of the archive. Keep the bucket, or the folder of the archive.`,
        ]),
    ...(pseudonymKeyId === null ? [] : [`Not in it: the pseudonym key. Keep ${key} in another place.`]),
    asCalled(`To restore it: npm run -s longwatch -- restore ${escapeText(file)}`),
  ];
  return `${lines.join("\n")}\n`;
}

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
  return storeCommand("migrate", HELP, io)
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
