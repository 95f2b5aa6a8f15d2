import { z } from "zod";
import { listQuarantined, type QuarantinedRow, readQuarantined } from "#db/ingest/quarantine.ts";
import { formatWhole, showSecond } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { EVENT_ROUTES } from "#model/kinds.ts";
import {
  IsoTime,
  maySee,
  Name,
  notFound,
  pageOf,
  pageQuery,
  RowId,
  Text,
  toIso,
  toPage,
  visibleZones,
  ZoneId,
} from "../fields.ts";
import { defineQuery } from "../operation.ts";
import { requireZone } from "../require-zone.ts";

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

export const listEntries = defineQuery({
  name: "quarantine.list",
  summary: "List the entries of the platform that could not be stored, newest first",
  http: ["GET", "/api/v1/quarantine"],
  tag: "Coverage",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    zone: ZoneId.optional().describe("Id of the shield zone. Default: all."),
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
      { head: "RECEIVED (UTC)", get: ({ receivedAt }) => showSecond(receivedAt) },
      { head: "ROUTE", get: ({ route, day }) => (day === null ? route : `${route} ${day}`) },
      { head: "BYTES", get: ({ bytes }) => formatWhole(bytes) },
      { head: "REASON", get: ({ reason }) => toLine(reason, 200) },
    ],
    empty: "No entry is in quarantine.",
  },
  run: async (asked, { zone, limit, after }) => {
    const { db, cursors, caller } = asked;
    const list = `quarantine:${zone}`;
    const [before] = cursors.readAfter(list, after) ?? [null];
    const zoneIds = visibleZones(caller, zone);
    if (zone !== undefined) await requireZone(asked, zone);
    const page = { zoneIds, before: before === null ? null : Number(before), limit: limit + 1 };
    const rows = await listQuarantined(db, page);
    return toPage(rows, limit, toItem, ({ id }) => cursors.sign(list, [id]));
  },
});

export const showEntry = defineQuery({
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
        `entry #${id} of zone ${zoneId}, received ${showSecond(receivedAt)} UTC from the ${route}, ${formatWhole(bytes)} bytes`,
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
