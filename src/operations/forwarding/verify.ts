import { z } from "zod";
import { openArrivals } from "#db/delivery/forwarding/forward-report.ts";
import { many } from "#lib/format.ts";
import { Moment, toIsoOrNull, visibleZones, ZoneNumber } from "../fields.ts";
import { defineChange } from "../operation.ts";
import { requireZone } from "../require-known.ts";
import { checkOrder } from "../span.ts";
import { DestinationName, forwardSoon, requireDestination, TAG } from "./destinations.ts";

export const verifyForwarding = defineChange({
  name: "forward.verify",
  summary: "Prove again that the hours of a destination have arrived",
  description:
    "The counts of each hour are compared again, and a destination that can be asked counts its events anew. An hour of which it has fewer events is sent again once. The answer is at once; the proof goes on in the background.",
  http: ["POST", "/api/v1/destinations/:destination/verify"],
  tag: TAG,
  scope: "act",
  refuses: [422],
  goesOn: true,
  input: z.strictObject({
    destination: DestinationName,
    zone: ZoneNumber.optional().describe("Id of the shield zone. Default: all."),
    from: Moment.optional()
      .meta({ time: true })
      .describe("Hours that begin at this time or later. Default: all."),
    to: Moment.optional().meta({ time: true }).describe("Hours that begin before this time. Default: all."),
  }),
  output: z.object({ hours: z.number().int().describe("Hours that are proven again.") }),
  example: { destination: "siem", zone: 101, from: "2026-11-20T00:00:00Z" },
  command: {
    examples: ["forward verify siem", "forward verify siem --zone 101 --from -7d"],
    help: "The service proves the hours in the background. forward status shows how many of them are still open.",
    say: ({ hours }) =>
      `${many(hours, "hour")} will be proven again. forward status shows how many of them are still open.\n`,
  },
  run: async (changing, { destination, zone, ...span }) => {
    const from = span.from === undefined ? undefined : Date.parse(span.from);
    const to = span.to === undefined ? undefined : Date.parse(span.to);
    checkOrder({ name: "from", ms: from }, { name: "to", ms: to });
    const zoneIds = visibleZones(changing.caller, zone);
    await requireDestination(changing, destination);
    if (zone !== undefined) await requireZone(changing, zone);
    const hours = await openArrivals(changing.tx, { destination, zoneIds, from, to });
    if (hours === 0) return { output: { hours }, audit: null };
    forwardSoon(changing, destination);
    const details = { zoneIds, from: toIsoOrNull(from ?? null), to: toIsoOrNull(to ?? null), hours };
    return {
      output: { hours },
      audit: { action: "forward.verified", subject: `destination ${destination}`, details },
    };
  },
});
