import { sql } from "drizzle-orm";
import type { Database, Queryable } from "../client.ts";
import { inTransaction } from "../postgres/transaction.ts";

const ROWS_PER_TRANSACTION = 200;

export interface QuarantineRewrite {
  /** Returns its argument if nothing has to change. */
  readonly raw: (raw: Buffer) => Buffer;
  readonly write: boolean;
}

/**
 * Rewrites entries that could not be read. Returns how many. Deletes an entry whose new content another entry already
 * has.
 */
export async function rewriteQuarantine(
  database: Database,
  zoneId: number | null,
  rewrite: QuarantineRewrite,
): Promise<number> {
  let changed = 0;
  let after: number | null = 0;
  while (after !== null) {
    const behind: number = after;
    const page = await inTransaction(database, ({ tx }) => rewritePage(tx, { zoneId, behind }, rewrite));
    changed += page.changed;
    after = page.last;
  }
  return changed;
}

async function rewritePage(
  tx: Queryable,
  { zoneId, behind }: { zoneId: number | null; behind: number },
  { raw: rewrite, write }: QuarantineRewrite,
): Promise<{ changed: number; last: number | null }> {
  const { rows } = await tx.execute<{ id: string; raw: Buffer }>(sql`
    select id, raw from quarantined_entries
    where id > ${behind} and (${zoneId}::integer is null or zone_id = ${zoneId}::integer)
    order by id limit ${ROWS_PER_TRANSACTION} for update`);
  let changed = 0;
  for (const { id, raw } of rows) {
    const after = rewrite(raw);
    if (after === raw) continue;
    changed++;
    if (write) await replaceRaw(tx, id, after);
  }
  return { changed, last: rows.length < ROWS_PER_TRANSACTION ? null : Number(rows.at(-1)?.id) };
}

/** Replaces the bytes of an entry. Deletes the entry if another one already has the new bytes. */
export async function replaceRaw(tx: Queryable, id: string, raw: Buffer): Promise<void> {
  await tx.execute(sql`
    delete from quarantined_entries q where id = ${id} and exists (
      select from quarantined_entries o where o.zone_id = q.zone_id and o.raw_hash = sha256(${raw}::bytea))`);
  await tx.execute(sql`update quarantined_entries set raw = ${raw}::bytea where id = ${id}`);
}
