import type { Queryable } from "#db/client.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { requestRun as insertRun, type RequestedRun, type WantedRun } from "#db/service/requested-runs.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";

export interface RunRequest extends WantedRun {
  /** Shown to people. */
  readonly by: string;
  /** The actor in the audit trail. */
  readonly actor: string;
  readonly nowMs: number;
}

/**
 * Adds a backfill or verification with its audit entry, or returns the unfinished one with the same span. Returns null if
 * too many of the zone are unfinished. Call in a transaction.
 */
export async function requestRun(
  tx: Queryable,
  { by, actor, nowMs, ...wanted }: RunRequest,
): Promise<{ readonly run: RequestedRun; readonly isNew: boolean } | null> {
  const requested = await insertRun(tx, { ...wanted, requestedBy: maskText(by) }, nowMs);
  if (requested?.isNew === true) {
    const { kind, zoneId, from, to, withIds } = wanted;
    await writeAuditEntry(tx, {
      actor: maskText(actor),
      action: `${kind}.requested`,
      subject: `run ${requested.run.id}`,
      details: {
        zoneId,
        from: new Date(from).toISOString(),
        to: new Date(to).toISOString(),
        ...(withIds ? { ids: true } : {}),
      },
    });
  }
  return requested;
}
