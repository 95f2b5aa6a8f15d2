import { and, desc, eq, gte, like, type SQL } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { auditEntries } from "../schema/audit-entries.ts";

export interface AuditedAct {
  readonly id: number;
  /** Epoch ms. */
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
  readonly details: unknown;
}

export interface AuditSearch {
  /** Epoch ms. */
  readonly since: number | undefined;
  /** An action, or with `.` at its end all of its kind. */
  readonly action: string | undefined;
  readonly limit: number;
}

/** The newest acts first. */
export async function listAudit(db: Queryable, { since, action, limit }: AuditSearch): Promise<AuditedAct[]> {
  const rows = await db
    .select()
    .from(auditEntries)
    .where(and(since === undefined ? undefined : gte(auditEntries.at, new Date(since)), isAction(action)))
    .orderBy(desc(auditEntries.id))
    .limit(limit);
  return rows.map((row) => ({ ...row, at: row.at.getTime() }));
}

function isAction(action: string | undefined): SQL | undefined {
  if (action === undefined) return undefined;
  return action.endsWith(".")
    ? like(auditEntries.action, `${action.replaceAll(/[\\%_]/g, String.raw`\$&`)}%`)
    : eq(auditEntries.action, action);
}

/** The latest act of a kind on a subject; null where there is none. */
export async function readLatestAct(db: Queryable, action: string): Promise<AuditedAct | null> {
  const [latest] = await listAudit(db, { since: undefined, action, limit: 1 });
  return latest ?? null;
}
