/** What the caller of a failed attempt does next; decided where the cause is known. */
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

/** Something a person typed is wrong: every mistake is listed, nothing was started. Exit code 2. */
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

/** Anything thrown, as an Error; keeps what was thrown as the cause. */
export function toError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown), { cause: thrown });
}
