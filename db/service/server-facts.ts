import { sql } from "drizzle-orm";
import { SESSION_SETTINGS } from "#lib/sql-session.ts";
import type { Queryable } from "../client.ts";

/** The server and those of its settings that may cost events or speed. */
export interface ServerFacts {
  /** 180001 for 18.1. */
  readonly versionNumber: number;
  readonly version: string;
  readonly encoding: string;
  readonly fsync: string;
  readonly fullPageWrites: string;
  readonly synchronousCommit: string;
  readonly autovacuum: string;
  /** 0 for no limit. */
  readonly statementTimeoutMs: number;
  readonly isReadOnly: boolean;
  /** Settings of this session that differ from those that the code sets, each with both values. */
  readonly differing: readonly string[];
  readonly maxConnections: number;
  readonly usedConnections: number;
  /** Whether the tables are of a version of Longwatch at all. */
  readonly hasTables: boolean;
}

export async function readServerFacts(db: Queryable): Promise<ServerFacts> {
  const { rows } = await db.execute<{ [Name in keyof ServerFacts]: ServerFacts[Name] }>(sql`
    select current_setting('server_version_num')::int as "versionNumber", current_setting('server_version') as "version",
      (select pg_encoding_to_char(encoding) from pg_database where datname = current_database())::text as "encoding",
      current_setting('fsync') as "fsync", current_setting('full_page_writes') as "fullPageWrites",
      current_setting('synchronous_commit') as "synchronousCommit", current_setting('autovacuum') as "autovacuum",
      -- In milliseconds, whatever unit the role's setting was typed in.
      (select setting::int from pg_settings where name = 'statement_timeout') as "statementTimeoutMs",
      pg_is_in_recovery() or current_setting('default_transaction_read_only') = 'on' as "isReadOnly",
      array(select format('%s is %s, not %s', key, current_setting(key), value)
        from json_each_text(${JSON.stringify(SESSION_SETTINGS)}::json) where current_setting(key) <> value) as "differing",
      current_setting('max_connections')::int as "maxConnections",
      (select count(*) from pg_stat_activity where backend_type = 'client backend')::int as "usedConnections",
      to_regclass('coverage_windows') is not null as "hasTables"`);
  const [facts] = rows;
  if (facts === undefined) throw new Error("the server's settings are not known");
  return facts;
}
