import path from "node:path";
import { createDatabase } from "#db/client.ts";
import { archiveCommand } from "#faces/cli/archive/archive.ts";
import { backupCommand } from "#faces/cli/backup.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { restoreCommand } from "#faces/cli/restore.ts";
import { searchCommand } from "#faces/cli/search/search.ts";
import { createPseudonymKeyring } from "#people/privacy/pseudonym-keyring.ts";
import { hostileEvents, NOW, openArchiveWorld, ZONE } from "../archive/files/archive-world.ts";
import { makeEvent } from "../detection/trend-support.ts";
import { runStoreCommand } from "../faces/cli/run-store-command.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const keysCommand = await loadSubject("keys");

export type Settings = Record<string, string>;

const COMMANDS = {
  archive: archiveCommand,
  backup: backupCommand,
  keys: keysCommand,
  restore: restoreCommand,
  search: searchCommand,
};

/** Runs a command of the program as it is typed. */
export function run(settings: Settings, line: readonly [keyof typeof COMMANDS, ...string[]]) {
  const [name, ...args] = line;
  return runStoreCommand(COMMANDS[name], settings, args, { now: NOW });
}

/** Prints every event of the zone with its record. */
export function search(settings: Settings) {
  return run(settings, ["search", "--zone", String(ZONE), "--from", "-10d", "--json", "--page-all"]);
}

/**
 * A database with an archived day, an open day, an alert, a key and the pseudonym key. `settings` are those of a command on
 * it.
 */
export async function openBackupWorld() {
  const world = await openArchiveWorld();
  const { database } = world;
  await world.store(hostileEvents());
  const data = makeTemporaryFolder("backup-data");
  const settings: Settings = {
    DATABASE_URL: database.url,
    LONGWATCH_ARCHIVE_DIR: world.folder,
    LONGWATCH_DATA_DIR: data,
  };
  await createPseudonymKeyring({ pseudonymKey: null, keyDir: data }, database).open();
  await run(settings, ["archive", "write"]);
  await world.store([makeEvent({ logId: "open", occurredAt: NOW - 60_000 })], { isSealed: false });
  await run(settings, ["keys", "create", "--name", "grafana", "--role", "reader"]);
  // Its trigger writes a row of alert_transitions.
  await database.pool.query(
    "insert into alerts (fired_at, kind, fingerprint, transitions) values (now(), 'spike', 'f', '[{}]')",
  );
  // Has a generated column.
  await database.pool.query(
    "insert into quarantined_entries (zone_id, route, reason, raw) values (1, 'list', 'r', 'x')",
  );
  return { ...world, settings, data };
}

export async function createIn(serverUrl: string, name: string): Promise<void> {
  const administrator = createDatabase({
    url: serverUrl,
    max: 1,
    applicationName: "longwatch test",
    onError: () => undefined,
  });
  await administrator.pool.query(`create database ${name}`);
  await administrator.close();
}

export function nextFile(name = "backup.tar"): string {
  return path.join(makeTemporaryFolder("backups"), name);
}
