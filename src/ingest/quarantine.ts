/** Entries that could not be read. */
import { z } from "zod";
import { KeyMissingError } from "#db/ingest/guard-page.ts";
import { listQuarantined, type QuarantinedRow, readQuarantined } from "#db/ingest/quarantine.ts";
import { mayRemoveEvents } from "#db/ingest/remove-events.ts";
import { writeAuditEntry } from "#db/people/audit-trail.ts";
import { createPartitionKeeper } from "#db/postgres/partitions.ts";
import { retryQuarantined, whyNotYet } from "#jobs/ingest/retry-quarantined.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { EVENT_ROUTES } from "#model/kinds.ts";
import { actorOf } from "#operations/caller.ts";
import {
  IsoTime,
  ListZones,
  maySee,
  Name,
  notFound,
  pageOf,
  pageQuery,
  RowId,
  RowNumber,
  Text,
  toIso,
  toPage,
  visibleZones,
  ZoneNumber,
} from "#operations/fields.ts";
import { type Changing, defineChange, defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { pickZones, requireZone } from "#operations/require-known.ts";

const MAX_TEXT_CHARS = 4_096;

const Entry = z
  .object({
    id: z.number().int(),
    zoneId: z.number().int(),
    receivedAt: IsoTime,
    route: z.enum(EVENT_ROUTES),
    day: Name.nullable().describe("The UTC day of the list; null for an entry of a search."),
    reason: Text.describe("Why it could not be stored. It may quote the entry's names. Escape it."),
    bytes: z.number().int(),
    isHeld: z
      .boolean()
      .describe("Whether it waits for the pseudonym key, because it may contain an erased address."),
  })
  .meta({ id: "QuarantinedEntry" });

const WholeEntry = Entry.extend({
  text: z
    .string()
    .nullable()
    .meta({ masked: "nothing" })
    .describe(
      `The first ${MAX_TEXT_CHARS} characters of the entry, as the platform sent it. Escape them. Null if it is held.`,
    ),
  isCut: z.boolean(),
  base64: z
    .string()
    .nullable()
    .meta({ masked: "nothing" })
    .describe("All bytes of the entry, if `whole` asks for them."),
}).meta({ id: "WholeQuarantinedEntry" });

const listEntries = defineQuery({
  name: "quarantine.list",
  summary: "List the entries of the platform that could not be stored, newest first",
  http: ["GET", "/api/v1/quarantine"],
  tag: "Coverage",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    zone: ListZones,
    ...pageQuery({ fallback: 50, most: 500 }),
  }),
  output: pageOf(Entry),
  command: {
    examples: ["quarantine list", "quarantine list --zone 101 --limit 20"],
    help: "quarantine retry reads the entries again, for example after an update (docs/runbooks/entries-are-in-quarantine.md).",
    limit: 50,
    columns: [
      { head: "ENTRY", get: ({ id }) => `#${id}` },
      { head: "ZONE", get: ({ zoneId }) => String(zoneId) },
      { head: "RECEIVED (UTC)", get: ({ receivedAt }) => showTime(receivedAt) },
      { head: "ROUTE", get: ({ route, day }) => (day === null ? route : `${route} ${day}`) },
      { head: "BYTES", get: ({ bytes }) => formatWhole(bytes) },
      { head: "REASON", get: ({ reason }) => toLine(reason, 200) },
    ],
    empty: "No entry is in quarantine.",
  },
  run: async (asked, { zone, limit, after }) => {
    const { db, cursors } = asked;
    const list = `quarantine:${JSON.stringify(zone)}`;
    const [before] = cursors.readAfter(list, after) ?? [null];
    const zoneIds = await pickZones(asked, zone);
    const page = { zoneIds, before: before === null ? null : Number(before), limit: limit + 1 };
    const rows = await listQuarantined(db, page);
    return toPage(rows, limit, toItem, ({ id }) => cursors.sign(list, [id]));
  },
});

const showEntry = defineQuery({
  name: "quarantine.show",
  summary: "Show one entry that could not be stored, with its text",
  description: "A masked key gets no text. The text comes from an attacker's request.",
  http: ["GET", "/api/v1/quarantine/:id"],
  tag: "Coverage",
  scope: "read",
  input: z.strictObject({
    id: RowId,
    whole: z
      .enum(["true", "false"])
      .default("false")
      .meta({ isSwitch: true })
      .describe("Also return all bytes of the entry, in base64."),
  }),
  output: WholeEntry,
  command: {
    examples: ["quarantine show 17", "quarantine show 17 --whole --json"],
    say: ({ id, zoneId, receivedAt, route, reason, bytes, isHeld, text, isCut }) =>
      [
        `entry #${id} of zone ${zoneId}, received ${showTime(receivedAt)} UTC from the ${route}, ${formatWhole(bytes)} bytes`,
        `reason: ${toLine(reason, 200)}`,
        isHeld
          ? "It waits for the pseudonym key (docs/privacy.md)."
          : (text ?? "The key may not read records."),
        ...(isCut ? [`The text goes on. To get all of it: quarantine show ${id} --whole --json`] : []),
        "",
      ].join("\n"),
  },
  run: async ({ db, caller }, { id, whole }) => {
    const [found] = await readQuarantined(db, { ids: [id] });
    if (found === undefined || !maySee(caller, found.zoneId)) throw notFound(`entry ${id} in quarantine`);
    const { raw, ...row } = found;
    // It may contain an erased address, which nobody may see again.
    const text = row.isHeld ? null : raw.toString("utf8", 0, MAX_TEXT_CHARS * 4).slice(0, MAX_TEXT_CHARS);
    return {
      ...toItem(row),
      text,
      isCut: text !== null && text.length === MAX_TEXT_CHARS && raw.length > Buffer.byteLength(text),
      base64: row.isHeld || whole === "false" ? null : raw.toString("base64"),
    };
  },
});

function toItem({ receivedAt, ...row }: QuarantinedRow): z.infer<typeof Entry> {
  return { ...row, receivedAt: toIso(receivedAt) };
}

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
      const retried = await retryQuarantined(deps, { zoneId, ids: entries, note }, signal).catch(
        (thrown: unknown) => {
          throw thrown instanceof KeyMissingError ? refusal(`${thrown.message} ${WITH_KEY}`) : thrown;
        },
      );
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

const WITH_KEY = "Try again when the key is there (docs/privacy.md).";
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
