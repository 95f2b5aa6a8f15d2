import { customType } from "drizzle-orm/pg-core";

/**
 * Text compared byte by byte, whatever the database's locale is, so that Postgres, JavaScript and page tokens share
 * one order.
 */
export const bytewiseText = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' });

export const bytea = customType<{ data: Buffer }>({ dataType: () => "bytea" });
