import type { Database } from "#db/client.ts";
import {
  deleteKnownSource,
  insertKnownSource,
  type KnownSourceRow,
  type NewKnownSource,
} from "#db/detection/known-sources.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";

/** Adds known sources, each with its audit entry. The detector leaves their events out from its next tick on. */
export function addKnownSources(
  database: Database,
  wanted: readonly NewKnownSource[],
  actor: string,
): Promise<KnownSourceRow[]> {
  return inTransaction(database, async ({ tx }) => {
    const added: KnownSourceRow[] = [];
    for (const one of wanted) {
      const row = await insertKnownSource(tx, one);
      await writeAuditEntry(tx, { actor: maskText(actor), action: "known-source.added", ...toEntry(row) });
      added.push(row);
    }
    return added;
  });
}

/** Adds one known source. */
export async function addKnownSource(
  database: Database,
  wanted: NewKnownSource,
  actor: string,
): Promise<KnownSourceRow> {
  const [row] = await addKnownSources(database, [wanted], actor);
  if (row === undefined) throw new Error("no known source was added");
  return row;
}

/** Removes a known source and writes an audit entry. Returns null if there is none. */
export function removeKnownSource(
  database: Database,
  id: number,
  actor: string,
): Promise<KnownSourceRow | null> {
  return inTransaction(database, async ({ tx }) => {
    const row = await deleteKnownSource(tx, id);
    if (row !== null)
      await writeAuditEntry(tx, { actor: maskText(actor), action: "known-source.removed", ...toEntry(row) });
    return row;
  });
}

/** Addresses are masked, because an erasure does not change audit entries. */
function toEntry({ id, zoneId, kind, pattern, reason, expiresAt }: KnownSourceRow) {
  return {
    subject: `known source ${id}`,
    details: {
      zoneId,
      kind,
      pattern: maskText(pattern),
      reason: maskText(reason),
      until: expiresAt?.toISOString() ?? null,
    },
  };
}
