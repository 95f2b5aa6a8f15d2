import { customType } from "drizzle-orm/pg-core";

/** Text compared byte by byte, whatever the database's locale: one order here, in JavaScript and in a page token. */
export const bytewiseText = customType<{ data: string }>({ dataType: () => 'text COLLATE "C"' });

export const bytea = customType<{ data: Buffer }>({ dataType: () => "bytea" });
