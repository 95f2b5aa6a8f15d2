/** Errors, what the queue does with them, and their messages. */

/** The caller's next step after a failed attempt; decided where the cause is known. */
export type Disposition = "retry" | "give-up" | "wait";

/**
 * Base of every error this service throws on purpose. `code` is a bounded set (SCREAMING_SNAKE),
 * `waitMs` is set only with disposition `wait`. Errors of libraries are wrapped with `cause`.
 */
export abstract class ServiceError extends Error {
  abstract readonly code: string;
  abstract readonly disposition: Disposition;
  readonly waitMs: number | undefined = undefined;
}

/** Thrown for mistakes in a person's input: every mistake is listed, nothing was started. Exit code 2. */
export class UsageError extends ServiceError {
  override readonly name = "UsageError";
  readonly code = "USAGE";
  readonly disposition = "give-up";
  readonly mistakes: readonly string[];

  constructor(mistakes: readonly string[]) {
    super(mistakes.join("\n"));
    this.mistakes = mistakes;
  }
}

/** Returns anything thrown as an Error. Keeps the thrown value as the cause. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
}

interface FailedQuery extends Error {
  readonly query: string;
}

/**
 * Returns whether the query builder wrapped this failure. Its message is then the query with all of its parameters,
 * which are addresses, texts of requests and hashes of keys.
 */
export function isFailedQuery(error: Error): error is FailedQuery {
  return "query" in error && typeof error.query === "string" && "params" in error;
}

/**
 * Returns the text of an error that may be stored or shown. For a failed query that is the cause, without the query.
 */
export function messageOf(error: Error): string {
  if (!isFailedQuery(error)) return error.message;
  const { cause } = error;
  if (!(cause instanceof Error)) return "a query failed";
  // A connection that fails in its first query fails the query that waits for it.
  if (isFailedQuery(cause)) return messageOf(cause);
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
  // If a name has several addresses that all fail, there is no message.
  return cause.message === "" ? code : cause.message;
}

/**
 * Returns the five-character SQLSTATE of a failure, even if the query builder wrapped it; null when Postgres gave
 * none.
 */
export function readSqlState(thrown: unknown): string | null {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const code = (error as { code?: unknown }).code;
    // No class of SQLSTATE begins with E, and every error of the system does, such as EPIPE.
    if (typeof code === "string" && /^(?!E)[0-9A-Z]{5}$/.test(code)) return code;
  }
  return null;
}
