import { expect } from "vitest";
import type { Emulator } from "#emulator/emulator.ts";
import { loadSubject } from "#faces/cli/commands.ts";
import { eraseCommand } from "#faces/cli/erase/erase.ts";
import { privacyCommand } from "#faces/cli/privacy/privacy.ts";
import { verifyCommand } from "#faces/cli/verify/verify.ts";
import { createRollUpTrendsJob } from "#jobs/detection/roll-up-trends.ts";
import { createSecret } from "#lib/secret.ts";
import { openRawBlock } from "#model/raw-block.ts";
import { createErasureGuard } from "#people/rules/erasure-guard.ts";
import { createPseudonymKey } from "#people/rules/pseudonym.ts";
import type { MigratedDatabase } from "../db/migrated-database.ts";
import { type Ran, runStoreCommand } from "../faces/cli/run-store-command.ts";
import { silent } from "../ingest/ingest-support.ts";

export const KEY_TEXT = "a-key-of-thirty-two-characters-or-more";
export const KEY = createPseudonymKey(createSecret(KEY_TEXT));
export const GUARD = createErasureGuard(() => Promise.resolve(KEY));

import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const auditCommand = await loadSubject("audit");

const COMMANDS = { erase: eraseCommand, audit: auditCommand, privacy: privacyCommand, verify: verifyCommand };

/** A command on the test's database, with the key that its ingest has. */
export function runCommand(
  database: MigratedDatabase,
  line: string,
  { now, emulator, typed }: { now: number; emulator?: Emulator; typed?: string },
): Promise<Ran> {
  const [name = "", ...args] = line.split(" ");
  const create = COMMANDS[name as keyof typeof COMMANDS];
  const platform: Record<string, string> =
    emulator === undefined
      ? {}
      : {
          EDGE_API_URL: emulator.url,
          EDGE_API_KEY: emulator.accessKey,
          EDGE_SHIELD_ZONES: "101",
          EDGE_REQUESTS_PER_SECOND: "1000",
        };
  return runStoreCommand(create, { ...environment(database), ...platform }, args, {
    now,
    ...(typed === undefined ? {} : { typed }),
  });
}

export function environment(database: MigratedDatabase): Record<string, string> {
  return {
    DATABASE_URL: database.url,
    LONGWATCH_PSEUDONYM_KEY: KEY_TEXT,
    LONGWATCH_DATA_DIR: makeTemporaryFolder("privacy"),
  };
}

export async function rollUp(database: MigratedDatabase): Promise<void> {
  await createRollUpTrendsJob({ database, log: silent }).run({} as never, new AbortController().signal);
}

/** Everything in the database as text, records opened: where a person's data may still be. */
export async function dumpDatabase({ pool }: MigratedDatabase): Promise<string> {
  const { rows: tables } = await pool.query<{ name: string }>(
    "select relname::text as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition",
  );
  const texts: string[] = [];
  for (const { name } of tables) {
    const { rows } = await pool.query<{ row: string }>(`select to_jsonb(t)::text as row from "${name}" t`);
    texts.push(...rows.map(({ row }) => `${name} ${row}`));
  }
  const { rows: blocks } = await pool.query<{ block: Buffer }>("select block from raw_blocks");
  for (const { block } of blocks)
    texts.push(...(await openRawBlock(block)).map((record) => `record ${String(record)}`));
  const { rows: unreadable } = await pool.query<{ raw: Buffer }>("select raw from quarantined_entries");
  texts.push(...unreadable.map(({ raw }) => `unreadable ${String(raw)}`));
  return texts.join("\n");
}

/** The records of these events, as they are kept. */
export async function recordsOf({ pool }: MigratedDatabase, logIds: ReadonlySet<string>): Promise<string[]> {
  const { rows } = await pool.query<{ block: Buffer }>(
    "select block from raw_blocks order by first_at, block_id",
  );
  const records = (await Promise.all(rows.map(({ block }) => openRawBlock(block)))).flat().map(String);
  return records.filter((record) => logIds.has((JSON.parse(record) as { logId: string }).logId));
}

/** Returns the rows that an erasure must not change. */
export async function countEverything({ pool }: MigratedDatabase) {
  const { rows } = await pool.query(`
    select (select count(*) from waf_events) as events,
      (select jsonb_agg(to_jsonb(b) order by zone_id, rule_id, width, starts_at) from rule_buckets b) as buckets,
      (select jsonb_agg(to_jsonb(w) - 'last_new_at' - 'searched_through' - 'passes' order by zone_id, starts_at)
        from coverage_windows w) as hours,
      (select sum(entry_count) from raw_blocks) as records`);
  return rows[0] as Record<string, unknown>;
}

/** Makes ingest read everything again that the platform still shows. */
export async function forgetProgress({ pool }: MigratedDatabase): Promise<void> {
  await pool.query(
    "delete from pages; delete from ingest_cursors; update coverage_windows set searched_through = null where state = 'open'",
  );
}

export function expectRan(ran: Ran, code = 0): string {
  expect({ code: ran.code, err: code === 0 ? "" : ran.err }).toEqual({
    code,
    err: code === 0 ? "" : ran.err,
  });
  return ran.out;
}
