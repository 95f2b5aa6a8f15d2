import { z } from "zod";
import { readHoursAgain } from "#db/delivery/forwarding/forward-hours.ts";
import { listForwardedHours } from "#db/delivery/forwarding/forward-report.ts";
import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { Moment, toIso, visibleZones, ZoneNumber } from "../fields.ts";
import { defineChange } from "../operation.ts";
import { Refusal } from "../refusal.ts";
import { checkSpan } from "../span.ts";
import { DestinationName, forwardSoon, requireDestination, TAG } from "./destinations.ts";

const MAX_DAYS = 100;

export const sendAgain = defineChange({
  name: "forward.send-again",
  summary: "Send all events of a time range to a destination again",
  description: `For a destination that lost events after it had acknowledged them. Whole hours are sent, at most ${MAX_DAYS} days. A receiver that does not know events by their id has them twice afterwards.`,
  http: ["POST", "/api/v1/destinations/:destination/send-again"],
  tag: TAG,
  scope: "act",
  refuses: [422],
  input: z.strictObject({
    destination: DestinationName,
    zone: ZoneNumber.describe("Id of the shield zone."),
    from: Moment.meta({ time: true }).describe("Hours that begin at this time or later."),
    to: Moment.meta({ time: true }).describe("Hours that begin before this time."),
    dryRun: z
      .boolean()
      .default(true)
      .meta({ flag: "yes" })
      .describe("By default, nothing is sent. The value false, or --yes, sends the events."),
  }),
  output: z.object({
    hours: z.number().int(),
    events: z
      .number()
      .int()
      .describe("Stored events that pass the destination's filters, as far as they are counted."),
    isSent: z.boolean().describe("False for a dry run. True: the events will be sent by the background job."),
  }),
  example: { destination: "siem", zone: 101, from: "2026-11-20T10:00:00Z", to: "2026-11-20T12:00:00Z" },
  command: {
    examples: [
      "forward send-again siem --zone 101 --from 2026-11-20T10:00 --to 2026-11-20T12:00",
      "forward send-again siem --zone 101 --from 2026-11-20 --to 2026-11-21 --yes",
    ],
    help: `Without --yes the command only says how many events it would send. Events of the last minutes go first, so a large range
delays nothing. forward status shows what is still to be sent.`,
    say: ({ hours, events, isSent }) => {
      const what = `${many(events, "event")} of ${many(hours, "hour")}`;
      if (isSent) return `${what} will be sent again. forward status shows the progress.\n`;
      return `${what} would be sent again.${hours === 0 ? "" : " Nothing was sent. Add --yes to send these events."}\n`;
    },
  },
  run: async (changing, { destination, zone: zoneId, dryRun, ...span }) => {
    const { tx, caller } = changing;
    const [from, to] = [Date.parse(span.from), Date.parse(span.to)];
    checkSpan(from, to, { max: MAX_DAYS, widthMs: DAY_MS, what: "days" });
    visibleZones(caller, zoneId);
    const { config, zones } = await requireDestination(changing, destination);
    const since = zones.get(zoneId);
    if (since == null) {
      const rule = `must be a zone that is forwarded to ${destination}`;
      throw refuse("zone", String(zoneId), rule);
    }
    if (from < since)
      throw refuse("from", toIso(from), `must be at or after ${toIso(since)}, where the destination begins`);
    const isFiltered = (config?.where.length ?? 0) > 0;
    const asked = { destination, zoneIds: [zoneId], from, to, isFiltered, limit: MAX_DAYS * 24 };
    const found = (await listForwardedHours(tx, asked)).filter(
      (hour) => hour.stored !== 0 || hour.acknowledged > 0,
    );
    const output = {
      hours: found.length,
      events: found.reduce((sum, { stored }) => sum + (stored ?? 0), 0),
      isSent: !dryRun && found.length > 0,
    };
    if (!output.isSent) return { output, audit: null };
    const starts = found.map(({ startsAt }) => startsAt);
    await readHoursAgain(tx, { destination, zoneId }, starts, { isAnew: true });
    forwardSoon(changing, destination);
    const { hours, events } = output;
    const details = { zoneId, from: toIso(from), to: toIso(to), hours, events };
    return {
      output,
      audit: { action: "forward.sent-again", subject: `destination ${destination}`, details },
    };
  },
});

function refuse(field: string, value: string, rule: string): Refusal {
  return new Refusal(422, {
    slug: "not-forwarded",
    mistakes: [{ field, value: JSON.stringify(value), rule }],
  });
}
