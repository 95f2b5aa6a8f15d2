import { z } from "zod";
import type { AssessedHour } from "#stages/coverage/hour-status.ts";
import { HOUR_STATES } from "../span.ts";

/** The state of one hour of a zone. */
export const HourItem = z.object({
  startsAtMs: z.number().int(),
  state: z.enum(HOUR_STATES),
  stored: z.number(),
});

export function toHourItem({ startsAt, status, storedCount }: AssessedHour): z.infer<typeof HourItem> {
  return { startsAtMs: startsAt, state: status, stored: storedCount };
}
