import type { MigratedDatabase } from "../db/migrated-database.ts";

/** What only the table's owner can do, and no statement of the service does. */
export async function clearAudit({ pool }: MigratedDatabase): Promise<void> {
  await pool.query(
    `alter table audit_entries disable trigger user; truncate audit_entries;
     alter table audit_entries enable trigger user`,
  );
}
