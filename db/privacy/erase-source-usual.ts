import { and, eq, sql } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { sourceUsual } from "../schema/sources.ts";

/**
 * Deletes what is usual for the addresses of a person, in one zone or in all. IPv6 addresses are kept as networks, in
 * which a person cannot be told apart, so all networks are deleted; they are learnt again within two days.
 */
export async function eraseSourceUsual(
  db: Queryable,
  zoneId: number | null,
  covers: (address: string) => boolean,
): Promise<void> {
  const isZone = zoneId === null ? undefined : eq(sourceUsual.zoneId, zoneId);
  const { address: source } = sourceUsual;
  const rows = await db.selectDistinct({ address: source }).from(sourceUsual).where(isZone);
  const erased = rows
    .map(({ address }) => address)
    .filter((address) => address.endsWith("/64") || covers(address));
  if (erased.length === 0) return;
  await db.delete(sourceUsual).where(and(isZone, sql`${source} = any(${sql.param(erased)}::text[])`));
}
