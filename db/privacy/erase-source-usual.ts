import { sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";

/**
 * Deletes what is usual for the addresses of a person, in one zone or in all. IPv6 addresses are kept as networks, in
 * which a person cannot be told apart, so all networks are deleted; they are learnt again within two days.
 */
export async function eraseSourceUsual(
  db: Queryable,
  zoneId: number | null,
  covers: (address: string) => boolean,
): Promise<void> {
  const isZone = zoneId === null ? sql`true` : sql`zone_id = ${zoneId}`;
  const { rows } = await db.execute<{ address: string }>(
    sql`select distinct address from source_usual where ${isZone}`,
  );
  const erased = rows
    .map(({ address }) => address)
    .filter((address) => address.endsWith("/64") || covers(address));
  if (erased.length === 0) return;
  await db.execute(
    sql`delete from source_usual where ${isZone} and address = any(${sql.param(erased)}::text[])`,
  );
}
