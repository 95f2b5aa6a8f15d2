import { ServiceError } from "../lib/errors.ts";

/** The platform's counts contradict themselves: nothing can be proven by them, and asking again may help. */
export class CountsUnreadableError extends ServiceError {
  override readonly name = "CountsUnreadableError";
  readonly code = "COUNTS_UNREADABLE";
  readonly disposition = "retry";
}
