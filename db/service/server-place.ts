import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

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
