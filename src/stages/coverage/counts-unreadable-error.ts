import { ServiceError } from "#lib/errors.ts";

/** Thrown when the platform's counts contradict themselves. They prove nothing, and a repeated request may help. */
export class CountsUnreadableError extends ServiceError {
  override readonly name = "CountsUnreadableError";
  readonly code = "COUNTS_UNREADABLE";
  readonly disposition = "retry";
}
