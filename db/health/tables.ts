/** The tables of the database and their rows, as a backup contains them. */
import { sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { copyQuery, readCopy } from "../postgres/copy.ts";
import { runTransaction, type Transaction } from "../postgres/transaction.ts";

/** A table, or the partition of one UTC day of it. */
interface StoredPart {
  readonly relation: string;
  /** `yyyy-mm-dd`; null for a table without partitions. */
  readonly day: string | null;
  /** Size on the disk of the server, for the progress. */
  readonly bytes: number;
}

export interface StoredTable {
  readonly name: string;
  /** Without generated columns. */
  readonly columns: readonly string[];
  readonly parts: readonly StoredPart[];
}

/** The next value of an identity column. */
export interface StoredSequence {
  readonly table: string;
  readonly column: string;
  readonly last: string;
  readonly isCalled: boolean;
}

export interface DescribedStore {
  /** A table comes after the tables that its rows refer to. */
  readonly tables: readonly StoredTable[];
  readonly sequences: readonly StoredSequence[];
  /** Creation time of the last applied migration, epoch ms. */
  readonly migration: number;
  /** Epoch ms, by the clock of the database. */
  readonly takenAt: number;
  /** Version of the Postgres server. */
  readonly postgres: string;
}

interface CatalogRow extends Record<string, unknown> {
  readonly name: string;
  readonly columns: string[];
  readonly refers: string[];
  readonly identities: string[];
  readonly parts: StoredPart[];
}

/**
 * Returns the tables of Longwatch as the catalogue has them, so that no later table can be forgotten. Tables of another
 * owner, such as views for dashboards, are not Longwatch's.
 */
async function describeStore(tx: Queryable): Promise<DescribedStore> {
  const { rows } = await tx.execute<CatalogRow>(sql`
    select c.relname::text as name,
      (select array_agg(a.attname::text order by a.attnum) from pg_attribute a
       where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = '') as columns,
      array(select distinct r.relname::text from pg_constraint f join pg_class r on r.oid = f.confrelid
       where f.conrelid = c.oid and f.contype = 'f' and f.confrelid <> c.oid) as refers,
      array(select a.attname::text from pg_attribute a
       where a.attrelid = c.oid and a.attidentity <> '' and not a.attisdropped) as identities,
      case when c.relkind = 'r'
        then jsonb_build_array(jsonb_build_object('relation', c.relname, 'day', null, 'bytes', pg_table_size(c.oid)))
        else (select coalesce(jsonb_agg(jsonb_build_object('relation', p.relname,
            'day', to_char(to_date(right(p.relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD'),
            'bytes', pg_table_size(p.oid)) order by p.relname), '[]')
          from pg_inherits i join pg_class p on p.oid = i.inhrelid where i.inhparent = c.oid) end as parts
    from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
      and c.relowner = (select relowner from pg_class where oid = 'public.audit_entries'::regclass)
    order by c.relname`);
  const { rows: facts } = await tx.execute<Pick<DescribedStore, "migration" | "takenAt" | "postgres">>(sql`
    select (select max(created_at)::float8 from drizzle.__drizzle_migrations) as migration,
      floor(extract(epoch from now()) * 1000)::float8 as "takenAt", current_setting('server_version') as postgres`);
  const [fact] = facts;
  if (fact === undefined) throw new Error("a query without a table returned no row");
  return { ...fact, tables: order(rows), sequences: await readSequences(tx, rows) };
}

/** Sorts tables behind those that they refer to. */
function order(rows: readonly CatalogRow[]): StoredTable[] {
  const ordered: CatalogRow[] = [];
  const isPlaced = (name: string) => ordered.some((row) => row.name === name);
  while (ordered.length < rows.length) {
    const next = rows.filter(({ name, refers }) => !isPlaced(name) && refers.every(isPlaced));
    if (next.length === 0) throw new Error("tables refer to each other in a circle");
    ordered.push(...next);
  }
  return ordered.map(({ name, columns, parts }) => ({ name, columns, parts }));
}

async function readSequences(tx: Queryable, rows: readonly CatalogRow[]): Promise<StoredSequence[]> {
  const sequences: StoredSequence[] = [];
  for (const { name: table, identities } of rows) {
    for (const column of identities) {
      const { rows: named } = await tx.execute<{ sequence: string }>(
        sql`select pg_get_serial_sequence(quote_ident(${table}), ${column}) as sequence`,
      );
      // The function has quoted the name.
      const { rows: read } = await tx.execute<Pick<StoredSequence, "last" | "isCalled">>(
        sql`select last_value::text as last, is_called as "isCalled" from ${sql.raw(named[0]?.sequence ?? "")}`,
      );
      const [state] = read;
      if (state !== undefined) sequences.push({ table, column, ...state });
    }
  }
  return sequences;
}

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
