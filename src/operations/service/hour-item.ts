import { z } from "zod";
import { HOUR_STATUSES } from "#model/kinds.ts";
import type { AssessedHour } from "#stages/coverage/hour-status.ts";

/** The state of one hour of a zone. */
export const HourItem = z.object({
  startsAtMs: z.number().int(),
  state: z.enum(HOUR_STATUSES),
  stored: z.number(),
});

export function toHourItem({ startsAt, status, storedCount }: AssessedHour): z.infer<typeof HourItem> {
  return { startsAtMs: startsAt, state: status, stored: storedCount };
}
