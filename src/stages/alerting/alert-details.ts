import { z } from "zod";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";

/** The column `details` of an alert. `message` is the message of the latest transition. */
const AlertDetails = z.object({ message: alertMessage.optional() });

/** Returns null as the message if the alert has none, or if it cannot be read. */
export function parseDetails(details: unknown): { readonly message: AlertMessage | null } {
  const { data } = AlertDetails.safeParse(details);
  return { message: data?.message ?? null };
}
