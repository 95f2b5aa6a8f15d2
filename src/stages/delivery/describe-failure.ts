import { type Disposition, ServiceError, toError } from "#lib/errors.ts";
import { cutText, toLine } from "#lib/text.ts";

export interface Failure {
  readonly code: string;
  readonly disposition: Disposition;
  readonly waitMs: number | undefined;
  /** One line, free of secrets. */
  readonly text: string;
}

/**
 * Returns a notifier's failure for the outbox. Only this service's own errors are quoted, because other errors may
 * contain secrets.
 */
export function describeFailure(thrown: unknown): Failure {
  if (thrown instanceof ServiceError) {
    const { code, disposition, waitMs, message } = thrown;
    return { code, disposition, waitMs, text: toLine(message, 300) };
  }
  const { name } = toError(thrown);
  const isTimeout = name === "TimeoutError";
  return {
    code: isTimeout ? "ATTEMPT_TIMEOUT" : "UNEXPECTED",
    disposition: "retry",
    waitMs: undefined,
    text: isTimeout ? "the attempt took too long" : cutText(name, 60),
  };
}
