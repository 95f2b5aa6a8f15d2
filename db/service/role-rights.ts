import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

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
