/** Facts about the Postgres server: its version, its place, the role's rights and its writers. */
import { randomBytes } from "node:crypto";
import { eq, sql } from "drizzle-orm";
import { SESSION_SETTINGS } from "#lib/sql-session.ts";
import type { Database, Queryable } from "../client.ts";
import { COMMAND_SESSIONS, WORK_SESSIONS } from "../postgres/server.ts";
import { serverSecrets } from "../schema/service.ts";

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

/** Folder of the server's data, as far as this role may know, and size of this database. */
export interface ServerPlace {
  readonly databaseBytes: number;
  /** Null if the role is neither a superuser nor a member of pg_read_all_settings. */
  readonly dataFolder: string | null;
  /** The server's side of this connection; null for a Unix socket. */
  readonly address: string | null;
  /** The process that serves this connection, as the server's machine numbers it. */
  readonly backendPid: number;
}

export async function readServerPlace(db: Queryable): Promise<ServerPlace> {
  // From the view, because current_setting() fails for a role that may not read the setting.
  const { rows } = await db.execute<{ [Name in keyof ServerPlace]: ServerPlace[Name] }>(sql`
    select pg_database_size(current_database())::float8 as "databaseBytes",
      (select setting from pg_settings where name = 'data_directory') as "dataFolder",
      host(inet_server_addr()) as "address", pg_backend_pid() as "backendPid"`);
  const [place] = rows;
  if (place === undefined) throw new Error("the place of the server is not known");
  return place;
}

export interface RoleRights {
  readonly role: string;
  readonly isSuperuser: boolean;
  /** Rights that reach beyond the database: roles, databases, replication, row security, files and programs. */
  readonly excess: readonly string[];
  /** True if the role could remove the trigger that protects the audit trail. */
  readonly ownsAudit: boolean;
  readonly isEncrypted: boolean;
  /** Null for a socket of this machine. */
  readonly clientAddress: string | null;
}

/** Returns the rights of this connection's role, and whether others can read the connection's traffic. */
export async function readRoleRights(db: Queryable): Promise<RoleRights> {
  const { rows } = await db.execute<{ [Name in keyof RoleRights]: RoleRights[Name] }>(sql`
    select r.rolname::text as "role",
      r.rolsuper as "isSuperuser",
      array_remove(array[
        case when r.rolcreaterole then 'CREATEROLE' end,
        case when r.rolcreatedb then 'CREATEDB' end,
        case when r.rolreplication then 'REPLICATION' end,
        case when r.rolbypassrls then 'BYPASSRLS' end,
        case when pg_has_role(r.oid, 'pg_execute_server_program', 'member') then 'pg_execute_server_program' end,
        case when pg_has_role(r.oid, 'pg_read_server_files', 'member') then 'pg_read_server_files' end,
        case when pg_has_role(r.oid, 'pg_write_server_files', 'member') then 'pg_write_server_files' end
      ], null) as "excess",
      coalesce((select pg_has_role(r.oid, c.relowner, 'member') from pg_class c
        where c.oid = to_regclass('audit_entries')), false) as "ownsAudit",
      coalesce((select s.ssl from pg_stat_ssl s where s.pid = pg_backend_pid()), false) as "isEncrypted",
      host(inet_client_addr()) as "clientAddress"
    from pg_roles r where r.rolname = current_user`);
  const [rights] = rows;
  if (rights === undefined) throw new Error("the role of this connection is not known");
  return rights;
}

/**
 * Returns the secret of this name. Stores `candidate` as the secret if there is none yet. Concurrent callers all get
 * the same secret.
 */
export async function readServerSecret(db: Queryable, name: string, candidate: Buffer): Promise<Buffer> {
  const read = async () => {
    const [row] = await db.select().from(serverSecrets).where(eq(serverSecrets.name, name));
    return row?.secret;
  };
  // A command reads a secret each time it runs, so the usual case writes nothing.
  const known = await read();
  if (known !== undefined) return known;
  await db.insert(serverSecrets).values({ name, secret: candidate }).onConflictDoNothing();
  const stored = await read();
  if (stored === undefined) throw new Error(`the secret ${name} was deleted while it was read`);
  return stored;
}

const hashKeys = new WeakMap<Database, string>();

/**
 * Returns the key of the hashes of matched texts. The first process that asks for the key makes it; all replicas have the same
 * one. The key stays in memory.
 */
export async function readHashKey(database: Database): Promise<string> {
  const known = hashKeys.get(database);
  if (known !== undefined) return known;
  const key = (await readServerSecret(database.db, "matched-text", randomBytes(32))).toString("hex");
  hashKeys.set(database, key);
  return key;
}

/**
 * Returns whether a session of the service's jobs or commands, in this process or in another one, is in a
 * transaction. That is nearly always so while events are copied in bulk, and seldom while few arrive. A role without
 * pg_read_all_stats sees no activity of other roles' sessions.
 */
export async function areWritersAtWork(
  db: Queryable,
  names: readonly string[] = [WORK_SESSIONS, COMMAND_SESSIONS],
): Promise<boolean> {
  const { rows } = await db.execute(sql`
    select 1 from pg_stat_activity
    where application_name in ${names} and state in ('active', 'idle in transaction') limit 1`);
  return rows.length > 0;
}
