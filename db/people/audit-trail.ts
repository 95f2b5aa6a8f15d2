/** The audit trail: writing an entry and reading them. */
import { and, desc, eq, gte, like, lt, type SQL } from "drizzle-orm";
import type { Queryable } from "../client.ts";
import { auditEntries } from "../schema/people.ts";

interface AuditedAct {
  readonly id: number;
  /** Epoch ms. */
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
  readonly details: unknown;
}

interface AuditSearch {
  /** Epoch ms. */
  readonly since: number | undefined;
  /** Epoch ms. */
  readonly until?: number | undefined;
  /** An action, or with `.` at the end every action with that prefix. */
  readonly action: string | undefined;
  /** Id of the last entry of the previous page. */
  readonly beforeId?: number | undefined;
  readonly limit: number;
}

/** Returns the matching entries, newest first. */
export async function listAudit(db: Queryable, search: AuditSearch): Promise<AuditedAct[]> {
  const { since, until, action, beforeId, limit } = search;
  const rows = await db
    .select()
    .from(auditEntries)
    .where(
      and(
        since === undefined ? undefined : gte(auditEntries.at, new Date(since)),
        until === undefined ? undefined : lt(auditEntries.at, new Date(until)),
        beforeId === undefined ? undefined : lt(auditEntries.id, beforeId),
        isAction(action),
      ),
    )
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

/** Returns the latest entry with this action (or prefix), or null. */
export async function readLatestAct(db: Queryable, action: string): Promise<AuditedAct | null> {
  const [latest] = await listAudit(db, { since: undefined, action, limit: 1 });
  return latest ?? null;
}

/**
 * An actor, an action and its subject. Written in the transaction of the change itself, so that neither exists
 * without the other.
 */
export type AuditEntry = Pick<typeof auditEntries.$inferInsert, "actor" | "action" | "subject" | "details">;

export async function writeAuditEntry(tx: Queryable, entry: AuditEntry): Promise<void> {
  await tx.insert(auditEntries).values(entry);
}
