import type { DeliveryError } from "../delivery-error.ts";

const FIRST_MS = 10_000;
const LONGEST_MS = 5 * 60_000;
/** A token or an address that a person has to change is tried again this often. */
const REFUSED_MS = 5 * 60_000;

/** Returns how long a destination is left alone after its nth failure in a row. */
export function retryPause(
  { disposition, waitMs }: Pick<DeliveryError, "disposition" | "waitMs">,
  failures: number,
): number {
  if (disposition === "give-up") return REFUSED_MS;
  return Math.min(Math.max(waitMs ?? 0, FIRST_MS * 2 ** Math.min(failures - 1, 10)), LONGEST_MS);
}
