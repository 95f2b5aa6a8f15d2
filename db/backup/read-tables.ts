import { sql } from "drizzle-orm";
import type { Database } from "../client.ts";
import { readCopy } from "../postgres/copy-out.ts";
import { copyQuery } from "../postgres/copy-query.ts";
import { runTransaction, type Transaction } from "../postgres/transaction.ts";
import { type DescribedStore, describeStore, type StoredTable } from "./describe-store.ts";

/**
 * Runs `read` in one snapshot of the database. Every table is locked against being dropped, as by pg_dump: a partition
 * that expires meanwhile is dropped later. Writers are not blocked.
 */
export async function inSnapshot<T>(
  database: Database,
  read: (transaction: Transaction, store: DescribedStore) => Promise<T>,
): Promise<T> {
  const { tables } = await describeStore(database.db);
  return runTransaction(
    database,
    async (transaction) => {
      const { tx } = transaction;
      await setUnlimited(transaction);
      await setPortable(transaction);
      // The snapshot is taken by the first statement behind this one, so no table of it can be missing.
      const names = sql.join(
        tables.map(({ name }) => sql.identifier(name)),
        sql`, `,
      );
      await tx.execute(sql`lock table ${names} in access share mode`);
      return read(transaction, await describeStore(tx));
    },
    { isolationLevel: "repeatable read", accessMode: "read only" },
  );
}

/** A copy of a large table takes longer than any statement of the service, and a file may be read between two of them. */
export async function setUnlimited({ tx }: Transaction): Promise<void> {
  await tx.execute(sql`set local statement_timeout = 0`);
  await tx.execute(sql`set local idle_in_transaction_session_timeout = 0`);
}

/**
 * Makes the text of a value independent of the settings of role and database, and keeps the order of the rows: parallel
 * workers mix it, and a scan that joins another one begins in the middle of the table.
 */
async function setPortable({ tx }: Transaction): Promise<void> {
  await tx.execute(sql`set local datestyle = 'ISO, YMD'`);
  await tx.execute(sql`set local bytea_output = 'hex'`);
  await tx.execute(sql`set local extra_float_digits = 1`);
  await tx.execute(sql`set local synchronize_seqscans = off`);
  await tx.execute(sql`set local max_parallel_workers_per_gather = 0`);
}

/** Yields the rows of a table or partition in COPY's text format. `counted` gets their number. */
export async function* readRows(
  { tx, client }: Transaction,
  relation: string,
  columns: StoredTable["columns"],
  counted: (rows: number) => void,
): AsyncGenerator<Buffer, void, undefined> {
  const names = sql.join(
    columns.map((name) => sql.identifier(name)),
    sql`, `,
  );
  const stream = await copyQuery(
    client,
    sql`select ${names} from ${sql.identifier(relation)}`,
    "format text",
  );
  yield* readCopy(client, stream);
  // The number comes in a message behind the last row, and this statement runs after that message.
  await tx.execute(sql`select 1`);
  counted(stream.rowCount);
}
