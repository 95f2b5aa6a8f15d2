import { z } from "zod";
import { readQuarantined } from "#db/ingest/quarantine.ts";
import { mayRemoveEvents } from "#db/ingest/remove-events.ts";
import { writeAuditEntry } from "#db/keys/audit-trail.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { retryQuarantined, whyNotYet } from "#jobs/ingest/retry-quarantined.ts";
import { many } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { actorOf } from "../caller.ts";
import { maySee, notFound, RowNumber, Text, visibleZones, ZoneNumber } from "../fields.ts";
import { type Changing, defineChange } from "../operation.ts";
import { Refusal } from "../refusal.ts";
import { requireZone } from "../require-zone.ts";
import { listEntries, showEntry } from "./list-quarantined.ts";

const MOST_NAMED = 500;
const MOST_SHOWN = 20;

const retryEntries = defineChange({
  name: "quarantine.retry",
  summary: "Read quarantined entries again, and store those that can be read now",
  description:
    "Name entries, or a zone for all of its entries. An event is stored once, however often its entry is read. Entries that still cannot be stored stay, with the reason of today.",
  http: ["POST", "/api/v1/quarantine/retry"],
  tag: "Coverage",
  scope: "act",
  refuses: [409, 422],
  isLong: true,
  input: z.strictObject({
    ids: z
      .array(RowNumber("an entry"))
      .min(1)
      .max(MOST_NAMED)
      .optional()
      .meta({ operand: true })
      .describe("Numbers of entries."),
    zone: ZoneNumber.optional().describe("Instead of numbers: all entries of this shield zone."),
  }),
  output: z.object({
    stored: z
      .number()
      .int()
      .describe("Entries whose events are stored now. They are no longer in quarantine."),
    kept: z.number().int(),
    reasons: z
      .array(z.object({ id: z.number().int(), reason: Text.describe("Escape it.") }))
      .describe(`Why entries still cannot be stored: at most ${MOST_SHOWN}.`),
  }),
  example: { zone: 101 },
  command: {
    examples: ["quarantine retry 17 18", "quarantine retry --zone 101 --by alice"],
    help: "Run it after an update that reads more, or after archive restore. It may be run twice, and again after a kill.",
    say: ({ stored, kept, reasons }) =>
      [
        `${many(stored, "entry", "entries")} stored, ${kept} kept`,
        ...reasons.map(({ id, reason }) => `  #${id}: ${toLine(reason, 200)}`),
        ...(kept > reasons.length ? [`  and ${kept - reasons.length} more`] : []),
        "",
      ].join("\n"),
  },
  run: async (changing, { ids, zone }) => {
    const { database, clock, caller, signal, erasures } = changing;
    const wanted = await findWanted(changing, { ids, zone });
    if (!(await mayRemoveEvents(database.db))) throw refusal(NO_RIGHT);
    const partitions = createPartitionKeeper(database);
    const deps = { database, clock, partitions, ...(erasures === undefined ? {} : { erasures }) };
    const output = { stored: 0, kept: 0, reasons: [] as { id: number; reason: string }[] };
    for (const [zoneId, entries] of wanted) {
      const note = (tx: Changing["tx"], stored: readonly number[]) =>
        writeAuditEntry(tx, {
          actor: actorOf(caller),
          action: "quarantine.retried",
          subject: `zone ${zoneId}`,
          details: { stored: stored.length, first: stored[0], last: stored.at(-1) },
        });
      const retried = await retryQuarantined(deps, { zoneId, ids: entries, note }, signal);
      if (retried === null)
        throw refusal(`Another retry of zone ${zoneId} is running. Try again when it has ended.`);
      output.stored += retried.stored;
      output.kept += retried.kept.length;
      output.reasons.push(...retried.kept.slice(0, MOST_SHOWN - output.reasons.length));
    }
    // The entries of the audit trail were written with the events.
    return { output, audit: null };
  },
});

export const quarantineOperations = [listEntries, showEntry, retryEntries] as const;

const NO_RIGHT =
  "The database role of this process may not store events. Use the command quarantine retry with the settings of a process with the role ingest.";

function refusal(detail: string): Refusal {
  return new Refusal(409, { slug: "retry-refused", detail });
}

/**
 * Returns the zones and, if entries are named, their ids.
 * @throws {Refusal} if the caller may not see one of them, or one cannot be read again yet
 */
async function findWanted(
  changing: Changing,
  { ids, zone }: { readonly ids: readonly number[] | undefined; readonly zone: number | undefined },
): Promise<Map<number, number[] | null>> {
  if (zone !== undefined && ids === undefined) {
    visibleZones(changing.caller, zone);
    await requireZone(changing, zone);
    return new Map([[zone, null]]);
  }
  if (ids === undefined || zone !== undefined)
    throw new Refusal(400, { mistakes: [{ field: "ids", rule: "must be given, or zone, but not both" }] });
  const rows = await readQuarantined(changing.db, { ids });
  const seen = new Map(rows.filter((row) => maySee(changing.caller, row.zoneId)).map((row) => [row.id, row]));
  const unseen = ids.find((id) => !seen.has(id));
  if (unseen !== undefined) throw notFound(`entry ${unseen} in quarantine`);
  for (const row of rows) {
    const why = whyNotYet(row);
    if (why !== null) throw refusal(`Entry ${row.id} ${why}`);
  }
  const named = [...Map.groupBy(rows, ({ zoneId }) => zoneId)];
  return new Map(named.map(([zoneId, entries]) => [zoneId, entries.map(({ id }) => id)]));
}
