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
