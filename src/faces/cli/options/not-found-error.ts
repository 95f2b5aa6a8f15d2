import { ServiceError } from "#lib/errors.ts";

/** Thrown if the alert, silence or key does not exist. */
export class NotFoundError extends ServiceError {
  override readonly name = "NotFoundError";
  readonly code = "NOT_FOUND";
  readonly disposition = "give-up";
}
