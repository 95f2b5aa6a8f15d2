import { ServiceError } from "../../lib/errors.ts";

/** What was asked for is not there. */
export class NotFoundError extends ServiceError {
  override readonly name = "NotFoundError";
  readonly code = "NOT_FOUND";
  readonly disposition = "give-up";
}
