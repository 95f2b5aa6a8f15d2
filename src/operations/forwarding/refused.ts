import { z } from "zod";
import { listRefusals } from "#db/delivery/forwarding/forward-report.ts";
import { showSecond } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { IsoTime, Name, pageOf, pageQuery, Text, toIso, toPage, visibleZones, ZoneId } from "../fields.ts";
import { defineQuery } from "../operation.ts";
import { requireZone } from "../require-known.ts";
import { DestinationName, requireDestination, TAG } from "./destinations.ts";

const RefusedEvent = z
  .object({
    zoneId: z.number().int(),
    occurredAt: IsoTime,
    logId: Name.describe("Escape it."),
    refusedAt: IsoTime,
    reason: Text.describe("The destination's words. They may quote the event. Escape them."),
  })
  .meta({ id: "RefusedEvent" });

export const listRefused = defineQuery({
  name: "forward.refused",
  summary: "List the events that a destination has refused, newest first",
  description:
    "A refused event does not stop the others. It is sent again if its values change, or if a person asks for that.",
  http: ["GET", "/api/v1/destinations/:destination/refused"],
  tag: TAG,
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    destination: DestinationName,
    zone: ZoneId.optional().describe("Id of the shield zone. Default: all."),
    ...pageQuery({ fallback: 50, most: 500 }),
  }),
  output: pageOf(RefusedEvent),
  command: {
    examples: ["forward refused siem", "forward refused siem --zone 101 --limit 20"],
    help: "forward retry sends the events again, after the cause is corrected at the receiver.",
    limit: 50,
    columns: [
      { head: "ZONE", get: ({ zoneId }) => String(zoneId) },
      { head: "EVENT (UTC)", get: ({ occurredAt }) => showSecond(occurredAt) },
      { head: "ID", get: ({ logId }) => toLine(logId, 100) },
      { head: "REFUSED (UTC)", get: ({ refusedAt }) => showSecond(refusedAt) },
      { head: "REASON", get: ({ reason }) => toLine(reason, 300) },
    ],
    empty: "No event was refused.",
  },
  run: async (asked, { destination, zone, limit, after }) => {
    const { db, cursors, caller } = asked;
    const list = `forward-refused:${JSON.stringify([destination, zone])}`;
    const position = cursors.readAfter(list, after);
    const [occurredAt, zoneId, logId] = position ?? [];
    const last =
      position === null
        ? null
        : { occurredAt: Number(occurredAt), zoneId: Number(zoneId), logId: String(logId) };
    const zoneIds = visibleZones(caller, zone);
    await requireDestination(asked, destination);
    if (zone !== undefined) await requireZone(asked, zone);
    const rows = await listRefusals(db, { destination, zoneIds, after: last, limit: limit + 1 });
    return toPage(
      rows,
      limit,
      (row) => ({ ...row, occurredAt: toIso(row.occurredAt), refusedAt: toIso(row.refusedAt) }),
      (row) => cursors.sign(list, [row.occurredAt, row.zoneId, row.logId]),
    );
  },
});
