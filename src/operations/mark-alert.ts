import { lockAlert } from "#db/alerting/alert-acts.ts";
import { readAlert } from "#db/alerting/alert-reports.ts";
import { lockSpikesOf, markSpike } from "#db/alerting/marks.ts";
import type { Database, Queryable } from "#db/client.ts";
import { forgetSourceDays } from "#db/detection/source-hours.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import type { Mark } from "#model/kinds.ts";
import type { PersonsAct } from "#stages/alerting/act-on-alert.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";

/** `not-a-spike`: an alert of Longwatch about itself, or one whose spike is no longer kept. */
export type MarkResult =
  | { readonly kind: "unknown" }
  | { readonly kind: "not-a-spike" }
  | { readonly kind: "unchanged"; readonly mark: Mark }
  | {
      readonly kind: "done";
      readonly mark: Mark;
      readonly before: Mark | null;
      readonly spikeIds: readonly number[];
    };

/**
 * Marks the spikes of an alert as attack or noise. The hours of an attack leave the rule's history at the next tick of
 * the detector; the hours of noise stay. A later mark replaces an earlier mark. Two calls at once are executed one
 * after the other.
 */
export function markAlert(
  database: Database,
  { alertId, mark, by, note, atMs }: PersonsAct & { readonly alertId: number; readonly mark: Mark },
): Promise<MarkResult> {
  return inTransaction(database, async ({ tx }) => {
    const seen = await readAlert(tx, alertId);
    if (seen === null) return { kind: "unknown" };
    // Locks spikes before alerts, in the same order as raise-alerts, to avoid a deadlock.
    const spikes = await lockSpikesOf(tx, seen);
    await lockAlert(tx, alertId);
    if (spikes.length === 0) return { kind: "not-a-spike" };
    const changing = spikes.filter((spike) => spike.mark !== mark);
    if (changing.length === 0) return { kind: "unchanged", mark };
    for (const spike of changing) {
      await markSpike(tx, spike.id, mark, new Date(atMs));
      if (mark === "attack") await forgetAttackDays(tx, spike);
    }
    const spikeIds = changing.map(({ id }) => id);
    const before = changing.findLast((spike) => spike.mark !== null)?.mark ?? null;
    await writeAuditEntry(tx, {
      actor: maskText(by),
      action: "alert.marked",
      subject: `alert ${alertId}`,
      // Masked, because an erasure does not change audit entries.
      details: { mark, before, spikeIds, ...(note === null ? {} : { note: maskText(note) }) },
    });
    return { kind: "done", mark, before, spikeIds };
  });
}

/** Takes the days of an attack out of what is usual for the address that led it. */
async function forgetAttackDays(
  tx: Queryable,
  { zoneId, sources, openedAt, lastActiveAt }: Awaited<ReturnType<typeof lockSpikesOf>>[number],
): Promise<void> {
  const addresses = (sources?.findings ?? []).filter(({ kind }) => kind === "rules_per_ip");
  for (const { key } of addresses)
    await forgetSourceDays(tx, zoneId, { address: key, from: openedAt, to: lastActiveAt });
}
