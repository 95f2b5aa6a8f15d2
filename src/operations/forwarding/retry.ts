import { z } from "zod";
import { tryNow } from "#db/delivery/forwarding/forward-destinations.ts";
import { readClosed, readHoursAgain } from "#db/delivery/forwarding/forward-hours.ts";
import { removeRefusals } from "#db/delivery/forwarding/forward-report.ts";
import { many } from "#lib/format.ts";
import { maySeeZone } from "../caller.ts";
import { defineChange } from "../operation.ts";
import { DestinationName, forwardSoon, requireDestination, TAG } from "./destinations.ts";

export const retryForwarding = defineChange({
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
    const isTried =
      caller.zoneIds === null || config?.zones?.every((zone) => maySeeZone(caller, zone)) === true;
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
