/** Loads the tables of a backup, and finds what a newer database had withdrawn. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { isNotNull, sql } from "drizzle-orm";
import { alias, PgDialect } from "drizzle-orm/pg-core";
import { from as copyFrom } from "pg-copy-streams";
import type { Database, Queryable } from "../client.ts";
import { applyMigrations } from "../migrate.ts";
import { addPartitions } from "../postgres/partitions.ts";
import { epochMs } from "../postgres/terms.ts";
import { ADVISORY_LOCKS, runTransaction } from "../postgres/transaction.ts";
import { apiKeys, auditEntries } from "../schema/people.ts";
import { erasures } from "../schema/privacy.ts";
import { leases } from "../schema/service.ts";
import { type StoredSequence, type StoredTable, setUnlimited } from "./tables.ts";

/** Returns the number of tables that Longwatch or its queue could have made. Extensions' tables are not counted. */
export async function countTables(db: Queryable): Promise<number> {
  const { rows } = await db.execute<{ count: number }>(sql`
    select count(*)::integer as count from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('public', 'drizzle', 'bullmq') and c.relkind in ('r', 'p')
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')`);
  return rows[0]?.count ?? 0;
}

interface LoadedStore {
  /** Creation time of the last migration of the tables, epoch ms. */
  readonly migration: number;
  readonly tables: readonly Pick<StoredTable, "name" | "columns">[];
  readonly sequences: readonly StoredSequence[];
}

type Table = LoadedStore["tables"][number];

/** Loads rows in COPY's text format, of one UTC day if the table is partitioned. Returns their number. */
export type LoadRows = (table: Table, day: string | null, rows: AsyncIterable<Buffer>) => Promise<number>;

/**
 * Creates the tables as they were when the backup was made, loads them with `fill`, and brings them to this version. Then
 * runs `finish` and commits: a database is restored completely, or it stays empty. A start of the service waits meanwhile.
 * `fill` gets the tables that this version makes.
 */
export async function loadStore<T>(
  database: Database,
  { migration, tables, sequences }: LoadedStore,
  fill: (isKnown: (name: string) => boolean, load: LoadRows) => Promise<void>,
  finish: (tx: Queryable) => Promise<T>,
): Promise<T> {
  return runTransaction(database, async (transaction) => {
    const { tx, client } = transaction;
    await setUnlimited(transaction);
    await tx.execute(sql`select pg_advisory_xact_lock(${ADVISORY_LOCKS.migrate})`);
    await applyMigrations(client, { after: 0, to: migration });
    const made = await readNames(tx);
    const known = tables.filter(({ name }) => made.has(name));
    // A trigger would write the rows of another table a second time.
    for (const { name } of known) await switchTriggers(tx, name, "disable");
    await fill(
      (name) => made.has(name),
      async ({ name, columns }, day, content) => {
        if (day !== null) await addPartitions(tx, [day]);
        const names = sql.join(
          columns.map((column) => sql.identifier(column)),
          sql`, `,
        );
        const copy = sql`copy ${sql.identifier(name)} (${names}) from stdin`;
        const stream = client.query(copyFrom(new PgDialect().sqlToQuery(copy).sql));
        await pipeline(Readable.from(content), stream);
        return stream.rowCount;
      },
    );
    for (const { name } of known) await switchTriggers(tx, name, "enable");
    for (const { table, column, last, isCalled } of sequences)
      if (made.has(table))
        await tx.execute(
          sql`select setval(pg_get_serial_sequence(quote_ident(${table}), ${column}), ${last}::bigint, ${isCalled})`,
        );
    await applyMigrations(client, { after: migration });
    // No process of the new database holds a lease. The fences go on.
    await tx.update(leases).set({ holder: null, expiresAt: null });
    // The planner has no statistics yet, and the first searches would be slow. A later migration may have dropped a table.
    const left = await readNames(tx);
    for (const { name } of known) if (left.has(name)) await tx.execute(sql`analyze ${sql.identifier(name)}`);
    return finish(tx);
  });
}

async function readNames(tx: Queryable): Promise<ReadonlySet<string>> {
  const { rows } = await tx.execute<{ name: string }>(
    sql`select relname::text as name from pg_class where relnamespace = 'public'::regnamespace`,
  );
  return new Set(rows.map(({ name }) => name));
}

async function switchTriggers(tx: Queryable, table: string, state: "enable" | "disable"): Promise<void> {
  await tx.execute(sql`alter table ${sql.identifier(table)} ${sql.raw(state)} trigger user`);
}

const e = alias(erasures, "e");
const t = alias(auditEntries, "t");

interface RevokedKey {
  readonly keyId: string;
  readonly name: string;
  readonly revokedAt: Date;
}

interface KnownErasure {
  /** Epoch ms. */
  readonly requestedAt: number;
  readonly zoneId: number | null;
  readonly family: number;
  readonly prefix: number;
  /** The actor, as in the audit trail. */
  readonly actor: string | null;
  readonly reason: string | null;
}

/** Changes that a restored backup must not undo. */
export interface Withdrawals {
  readonly revoked: readonly RevokedKey[];
  readonly erasures: readonly KnownErasure[];
}

/** Returns every revoked key and every erasure of a database. */
export async function readWithdrawals(db: Queryable): Promise<Withdrawals> {
  const { keyId, name } = apiKeys;
  const revoked = await db
    .select({ keyId, name, revokedAt: sql<Date>`${apiKeys.revokedAt}`.mapWith(apiKeys.revokedAt) })
    .from(apiKeys)
    .where(isNotNull(apiKeys.revokedAt))
    .orderBy(apiKeys.revokedAt);
  const { rows } = await db.execute<{ [Key in keyof KnownErasure]: KnownErasure[Key] }>(sql`
    select ${epochMs(e.requestedAt)} as "requestedAt", ${e.zoneId} as "zoneId", ${e.family}, ${e.prefix},
      a.actor, a.details ->> 'reason' as reason
    from ${erasures} ${e} left join lateral (
      select ${t.actor}, ${t.details} from ${auditEntries} ${t}
      where ${t.action} = 'erasure.requested' and ${t.details} ->> 'erasure' = ${e.id}::text
      order by ${t.id} desc limit 1) a on true
    order by ${e.requestedAt}`);
  return { revoked, erasures: rows };
}
