import path from "node:path";
import type { Config } from "#config/config.ts";
import { readDatabaseUrl } from "#config/read-database-url.ts";
import type { Database } from "#db/client.ts";
import { countTables, readWithdrawals, type Withdrawals } from "#db/health/load-tables.ts";
import { type CheckOptions, openBackup } from "#health/backup/open-backup.ts";
import { type RestoredBackup, restoreBackup } from "#health/backup/restore-backup.ts";
import { UsageError } from "#lib/errors.ts";
import { formatIso, many, showTime } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { createSecret } from "#lib/secret.ts";
import { escapeText } from "#lib/text.ts";
import { toKeyItem } from "#people/keys/issue-key.ts";
import { createPseudonymKeyring } from "#people/privacy/pseudonym-keyring.ts";
import { createFolderStorage } from "#store/bucket/folder-storage.ts";
import { summarise } from "./backup.ts";
import type { FlagReader } from "./edge/flag-reader.ts";
import { readActor } from "./options/read-options.ts";
import { BY, defineTask, onFiles, onStore, type StoreParts } from "./store/define-task.ts";
import { withStore } from "./store/open-store.ts";

const HELP = `
Puts a backup of longwatch backup into the empty database of DATABASE_URL, or into a new embedded database in
LONGWATCH_DATA_DIR: the command also moves the data from one to the other. Postgres 15 or newer; no other program is needed.
The command first compares every part of the file with its hash. The rows are committed at once at the end: after an
interruption the database is empty, and the same command can be run again. Files of the archive are put into
LONGWATCH_ARCHIVE_DIR. The service must not run on that database meanwhile.

--old-database reads the database that the backup was made of, and names the keys that were revoked and the erasures that
were made since. "embedded" is the one in LONGWATCH_DATA_DIR. A password can come from ~/.pgpass. --check only compares the
file with its hashes.

Examples:
  npm run -s longwatch -- restore /backups/2026-11-22.tar --check
  LONGWATCH_DATA_DIR=/var/lib/longwatch-new npm run -s longwatch -- restore /backups/2026-11-22.tar
  DATABASE_URL=postgres://longwatch@db/longwatch npm run -s longwatch -- restore move.tar --old-database embedded`;

const EMBEDDED = "embedded";

/** `longwatch restore`: puts a backup into an empty database. */
export const restoreCommand = defineTask({
  name: "restore",
  help: HELP,
  operand: ["file", "the file of longwatch backup"],
  options: {
    "--old-database <url>": 'name what was revoked and erased since: a database, or "embedded"',
    "--check": "only compare the file with its hashes",
    ...BY,
  },
  read(flags, read, { operand }) {
    if (operand === undefined) read.mistakes.push("the file of the backup is missing");
    return {
      file: path.resolve(operand ?? ""),
      oldUrl: readOldDatabase(read, flags.oldDatabase),
      isCheck: flags.check === true,
      actor: readActor(read, flags.by),
    };
  },
  async run({ file, oldUrl, isCheck, actor }, io, readConfig) {
    const config = readConfig();
    const { folder } = config.archive;
    if (isCheck) return onFiles(io, createFolderStorage(folder), (parts) => check(file, parts));
    if (oldUrl === EMBEDDED && config.databaseUrl === null)
      throw new UsageError([
        `--old-database "${EMBEDDED}" must be another database than the one to restore into: set DATABASE_URL, or name the old one`,
      ]);
    const since = oldUrl === null ? null : await readOld(config, oldUrl);
    const restore = async ({ database, archive: { storage }, onProgress, signal }: StoreParts) => {
      await requireEmpty(config, database);
      const backup = await openBackup(file, { onProgress, signal });
      const more = { folder: createFolderStorage(folder), actor, since, onProgress, signal };
      const restored = await restoreBackup(backup, { database, storage, ...more });
      const manifest = summarise(backup.manifest);
      const keyring = createPseudonymKeyring(config, database, { mayCreate: false });
      const keyProblem = manifest.pseudonymKeyId === null ? null : await keyring.findProblem();
      return {
        facts: { file, ...manifest, ...toJson(restored), keyProblem },
        text: describe(file, manifest, restored, keyProblem),
      };
    };
    return onStore(io, config, restore, { mayCreate: true });
  },
});

function readOldDatabase(read: FlagReader, text: string | undefined): string | null {
  if (text === undefined) return null;
  if (text === EMBEDDED) return text;
  const rule = `postgres://user@host/database, or "${EMBEDDED}"`;
  if (!/^postgres(?:ql)?:\/\//.test(text)) read.mistakes.push(`--old-database must be ${rule}`);
  else {
    const found = readDatabaseUrl(text);
    if ("url" in found) return found.url;
    read.mistakes.push(`--old-database: ${found.mistake}`);
  }
  return null;
}

function readOld(config: Config, url: string): Promise<Withdrawals> {
  const databaseUrl = url === EMBEDDED ? null : createSecret(url);
  return withStore({ ...config, databaseUrl }, ({ db }) => readWithdrawals(db));
}

async function check(file: string, checking: CheckOptions) {
  const { manifest, unknownMembers } = await openBackup(file, checking);
  const facts = summarise(manifest);
  const made = `made by Longwatch ${facts.version} at ${showTime(facts.takenAt)} UTC`;
  return {
    facts: { file, ...facts, unknownMembers },
    text: `${escapeText(file)} is complete and undamaged: ${contentOf(facts)}, ${made}.\n${describeUnknown(unknownMembers)}`,
  };
}

/** @throws {UsageError} */
async function requireEmpty({ databaseUrl, dataDir }: Config, { db }: Database): Promise<void> {
  const tables = await countTables(db);
  if (tables === 0) return;
  const rule = `has ${many(tables, "table")}, and a backup is restored into an empty database`;
  throw new UsageError([
    databaseUrl === null
      ? `LONGWATCH_DATA_DIR: the embedded database in ${dataDir} ${rule}: set another folder, or stop the service and move the folder away`
      : `DATABASE_URL: the database ${rule}: name another one, made with createdb`,
  ]);
}

function toJson({ validKeys, since, ...rest }: RestoredBackup) {
  const erasures = since?.erasures.map(({ requestedAt, ...erasure }) => ({
    requestedAt: formatIso(requestedAt),
    ...erasure,
  }));
  return {
    ...rest,
    // The accounts are those of the service that will run.
    validKeys: validKeys.map((key) => toKeyItem(key, { accounts: [] })),
    since: since === null ? null : { revoked: since.revoked, erasures },
  };
}

/** Returns a line that names the first members; empty if there are none. */
function describeUnknown(members: readonly string[]): string {
  if (members.length === 0) return "";
  const named = members.slice(0, MOST_NAMED).map((name) => escapeText(name));
  const more = members.length > MOST_NAMED ? `, and ${members.length - MOST_NAMED} more` : "";
  return `${many(members.length, "member")} of the file ${members.length === 1 ? "does" : "do"} not belong to the backup and ${members.length === 1 ? "is" : "are"} not restored: ${named.join(", ")}${more}.\n`;
}

const MOST_NAMED = 20;

function contentOf({ rows, archiveFiles }: { readonly rows: number; readonly archiveFiles: number }): string {
  return `${many(rows, "row")} and ${many(archiveFiles, "file")} of the archive`;
}

function describe(
  file: string,
  { version, takenAt }: ReturnType<typeof summarise>,
  restored: RestoredBackup,
  keyProblem: string | null,
): string {
  const at = `${showTime(takenAt)} UTC`;
  const { missingFiles, unknownTables } = restored;
  const steps = [
    ...(keyProblem === null
      ? []
      : [`${keyProblem} Put it back before the service starts (docs/privacy.md).`]),
    ...(missingFiles.length === 0
      ? []
      : [
          `${many(missingFiles.length, "file")} of the archive ${missingFiles.length === 1 ? "is" : "are"} neither in the backup nor in the archive, the first is ${missingFiles[0]}. Set LONGWATCH_ARCHIVE_URL to the bucket, or copy the folder of the archive.`,
        ]),
    ...describeKeys(restored, at),
    ...describeErasures(restored, at),
    "Start the service. Then check: npm run -s longwatch -- doctor; npm run -s longwatch -- archive verify",
  ];
  const skipped =
    unknownTables.length === 0
      ? ""
      : `Not restored, because Longwatch does not make them: the tables ${unknownTables.join(", ")}.\n`;
  return asCalled(
    `Restored ${escapeText(file)}: ${contentOf(restored)}, made by Longwatch ${version} at ${at}.\n${skipped}${describeUnknown(restored.unknownMembers)}Next steps:\n${steps.map((step, index) => `  ${index + 1}. ${step}\n`).join("")}`,
  );
}

function describeKeys({ since, validKeys }: RestoredBackup, at: string): string[] {
  if (since === null && validKeys.length === 0) return [];
  const lines =
    since === null
      ? validKeys.map(
          ({ keyId, name, roles }) => `${revoke(keyId)}   # ${escapeText(name)}, ${roles.join(", ")}`,
        )
      : since.revoked.map(
          ({ keyId, name, revokedAt }) =>
            `${revoke(keyId)}   # ${escapeText(name)}, revoked ${showTime(revokedAt.getTime())} UTC`,
        );
  if (lines.length === 0) return [];
  const head =
    since === null
      ? `${many(lines.length, "key")} of the backup ${lines.length === 1 ? "is" : "are"} valid. Revoke again what was revoked after ${at}:`
      : `${many(lines.length, "key")} ${lines.length === 1 ? "was" : "were"} revoked after the backup and ${lines.length === 1 ? "is" : "are"} valid again. Revoke:`;
  return [[head, ...lines].join("\n       ")];
}

function revoke(keyId: string): string {
  return `npm run -s longwatch -- keys revoke ${keyId}`;
}

function describeErasures({ since }: RestoredBackup, at: string): string[] {
  const command = "npm run -s longwatch -- erase --ip <address> --reason <reason>";
  if (since === null)
    return [`Repeat the erasures that were made after ${at}, before the service starts: ${command}`];
  if (since.erasures.length === 0) return [];
  const lines = since.erasures.map(({ requestedAt, zoneId, family, prefix, actor, reason }) => {
    const what =
      prefix === (family === 4 ? 32 : 128) ? `an IPv${family} address` : `an IPv${family} network /${prefix}`;
    const where = zoneId === null ? "every zone" : `zone ${zoneId}`;
    const who = actor === null ? "" : `, by ${escapeText(actor)}`;
    return `${showTime(requestedAt)} UTC: ${what}, ${where}${who}${reason === null ? "" : `: ${escapeText(reason)}`}`;
  });
  const head = `${many(lines.length, "erasure")} ${lines.length === 1 ? "was" : "were"} made after the backup. Repeat ${lines.length === 1 ? "it" : "them"} before the service starts, with the address from the request: ${command}`;
  return [[head, ...lines].join("\n       ")];
}
