import { isNotNull, sql } from "drizzle-orm";
import { alias } from "drizzle-orm/pg-core";
import type { Queryable } from "../client.ts";
import { epochMs } from "../postgres/terms.ts";
import { apiKeys } from "../schema/api-keys.ts";
import { auditEntries } from "../schema/audit-entries.ts";
import { erasures } from "../schema/erasures.ts";

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
