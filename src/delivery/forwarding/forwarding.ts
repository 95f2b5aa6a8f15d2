/** The operations on forwarding. */
import { z } from "zod";
import { tryNow } from "#db/delivery/forwarding/forward-destinations.ts";
import { readClosed, readHoursAgain } from "#db/delivery/forwarding/forward-hours.ts";
import { listForwardedHours, openArrivals, removeRefusals } from "#db/delivery/forwarding/forward-report.ts";
import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { maySeeAll } from "#operations/caller.ts";
import { Moment, toIso, toIsoOrNull, visibleZones, ZoneNumber } from "#operations/fields.ts";
import { defineChange } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { requireZone } from "#operations/require-known.ts";
import { checkOrder, checkSpan } from "#operations/span.ts";
import { DestinationName, forwardSoon, requireDestination, TAG } from "./destinations.ts";
import { listForwarded, listRefused } from "./hours.ts";
import { showForwarding } from "./status.ts";

const retryForwarding = defineChange({
  name: "forward.retry",
  summary: "Try a failing destination now, and send refused events again",
  description:
    "Run it after the cause is corrected. Hours that can no longer change have no receipts, so the other events of such an hour are sent again with the refused ones.",
  http: ["POST", "/api/v1/destinations/:destination/retry"],
  tag: TAG,
  scope: "act",
  refuses: [422],
  input: z.strictObject({ destination: DestinationName }),
  output: z.object({
    isTried: z
      .boolean()
      .describe("False if the destination also has zones that the key is not for: it then keeps its pause."),
    events: z.number().int().describe("Refused events that are sent again."),
    hours: z.number().int(),
  }),
  command: {
    examples: ["forward retry siem", "forward retry siem --by alice"],
    help: "Run it after the cause is corrected. An event that the destination refuses again is listed again.",
    say: ({ events, hours, isTried }) => {
      const refused =
        events === 0 ? "" : ` ${many(events, "refused event")} of ${many(hours, "hour")} will be sent again.`;
      const when = isTried ? "will be tried now" : "has other zones, too, and will be tried after its pause";
      return `The destination ${when}.${refused}\n`;
    },
  },
  run: async (changing, { destination }) => {
    const { tx, caller } = changing;
    const { config } = await requireDestination(changing, destination);
    // The pause is that of every zone of the destination.
    const isTried = maySeeAll(caller, config?.zones ?? null);
    if (isTried) await tryNow(tx, destination);
    const removed = await removeRefusals(tx, destination, caller.zoneIds);
    for (const [zoneId, found] of Map.groupBy(removed, (one) => one.zoneId)) {
      const zone = { destination, zoneId };
      const hours = found.map(({ startsAt }) => startsAt);
      const closed = await readClosed(tx, zone, hours);
      for (const isAnew of [false, true]) {
        const some = hours.filter((hour) => closed.has(hour) === isAnew);
        if (some.length > 0) await readHoursAgain(tx, zone, some, { isAnew });
      }
    }
    forwardSoon(changing, destination);
    const events = removed.reduce((sum, one) => sum + one.events, 0);
    const sent = { events, hours: removed.length };
    return {
      output: { isTried, ...sent },
      audit: { action: "forward.retried", subject: `destination ${destination}`, details: sent },
    };
  },
});

const MAX_DAYS = 100;

const sendAgain = defineChange({
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

const verifyForwarding = defineChange({
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

export const forwardOperations = [
  showForwarding,
  listForwarded,
  listRefused,
  retryForwarding,
  sendAgain,
  verifyForwarding,
] as const;
