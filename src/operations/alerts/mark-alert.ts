import { z } from "zod";
import { lockAlert } from "#db/alerting/alert-acts.ts";
import { readAlert } from "#db/alerting/alert-reports.ts";
import { lockSpikesOf, markSpike } from "#db/alerting/marks.ts";
import type { Queryable } from "#db/client.ts";
import { forgetSourceDays } from "#db/detection/source-hours.ts";
import { many } from "#lib/format.ts";
import { toLine } from "#lib/plain-text.ts";
import { MARK_RESULTS, MARKS, type Mark } from "#model/kinds.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";
import { lineOf, notFound, RowId, Text } from "../fields.ts";
import { type AuditNote, defineChange } from "../operation.ts";
import { Refusal } from "../refusal.ts";
import { findAlert } from "./alert.ts";

export const MarkWord = z.enum(MARKS, `must be one of ${MARKS.join(", ")}`);

export const Marked = z.object({
  result: z.enum(MARK_RESULTS),
  mark: z.enum(MARKS),
  before: z.enum(MARKS).nullable(),
  spikeIds: z.array(z.number().int()).describe("The spikes whose mark was changed."),
});

interface MarkedSpikes {
  /** Null if there is no spike to mark: an alert of Longwatch about itself, or one whose spike is no longer kept. */
  readonly marked: z.infer<typeof Marked> | null;
  readonly audit: AuditNote | null;
}

/**
 * Marks the spikes of an alert. The hours of an attack leave the rule's history at the next tick of the detector; the hours
 * of everything else stay. A later mark replaces an earlier mark. Two calls at once are executed one after the other.
 */
export async function markSpikes(
  tx: Queryable,
  wanted: {
    readonly alertId: number;
    readonly mark: Mark;
    readonly note: string | null;
    readonly atMs: number;
  },
): Promise<MarkedSpikes> {
  const { alertId, mark, note, atMs } = wanted;
  const seen = await readAlert(tx, alertId);
  if (seen === null) throw notFound(`alert ${alertId}`);
  // Locks spikes before alerts, in the same order as raise-alerts, to avoid a deadlock.
  const spikes = await lockSpikesOf(tx, seen);
  await lockAlert(tx, alertId);
  if (spikes.length === 0) return { marked: null, audit: null };
  const changing = spikes.filter((spike) => spike.mark !== mark);
  if (changing.length === 0)
    return { marked: { result: "unchanged", mark, before: mark, spikeIds: [] }, audit: null };
  for (const spike of changing) {
    await markSpike(tx, spike.id, mark, new Date(atMs));
    if (mark === "attack") await forgetAttackDays(tx, spike);
  }
  const spikeIds = changing.map(({ id }) => id);
  const before = changing.findLast((spike) => spike.mark !== null)?.mark ?? null;
  return {
    marked: { result: "done", mark, before, spikeIds },
    audit: {
      action: "alert.marked",
      subject: `alert ${alertId}`,
      // Masked, because an erasure does not change audit entries.
      details: { mark, before, spikeIds, ...(note === null ? {} : { note: maskText(note) }) },
    },
  };
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

export const markAlert = defineChange({
  name: "alerts.mark",
  summary: "Say what an alert was: an attack, or why it was none",
  description:
    "The hours of an attack leave the history that the rule's threshold is computed from; all other hours stay. `noise` means no attack, without a reason. A later mark replaces an earlier one.",
  http: ["POST", "/api/v1/alerts/:id/mark"],
  tag: "Alerts",
  scope: "act",
  refuses: [409],
  input: z.strictObject({
    id: RowId.describe("The alert's number."),
    mark: MarkWord.meta({ flag: "as" }),
    note: lineOf(500).optional().describe("A reason for the audit trail."),
  }),
  output: Marked.extend({ id: z.number().int(), by: Text }),
  example: { id: "17", mark: "noise", note: "load test" },
  command: {
    examples: [
      "alerts mark 17 --as attack",
      "alerts mark 17 --as misfire",
      'alerts mark 17 --as noise --by alice --note "a load test"',
    ],
    help: 'misfire: the rule matches legitimate visitors. broken-client: a client repeats a request that cannot succeed. noise: no attack, without a reason. The hours of an attack leave the rule\'s history, so that the next attack like it is still a spike. The hours of every other mark stay in the history, so that harmless traffic becomes usual. The last mark counts. Longwatch notifies nobody of a mark. If a rule is often marked, and not as an attack, "alerts show" suggests a setting.',
    say: ({ id, by, ...marked }) => sayMarked(id, by, marked),
  },
  run: async ({ caller, tx, now }, { id, mark, note = null }) => {
    await findAlert(tx, caller, id);
    const { marked, audit } = await markSpikes(tx, { alertId: id, mark, note, atMs: now });
    if (marked === null)
      throw new Refusal(409, {
        slug: "alert-without-spike",
        detail: `Alert ${id} has no spike that is kept. Only alerts about a rule can be marked.`,
      });
    return { output: { id, by: caller.name, ...marked }, audit };
  },
});

export function sayMarked(alertId: number, by: string, marked: z.infer<typeof Marked>): string {
  const { result, mark, before, spikeIds } = marked;
  if (result === "unchanged") return `alert #${alertId} is already marked as ${mark}; nothing was changed.\n`;
  const instead = before === null ? "" : ` instead of ${before}`;
  const hours =
    mark === "attack" ? "its hours leave the rule's history" : "its hours stay in the rule's history";
  return `alert #${alertId}: ${many(spikeIds.length, "spike")} marked as ${mark}${instead} by ${toLine(by, 100)}; ${hours}.\n`;
}
