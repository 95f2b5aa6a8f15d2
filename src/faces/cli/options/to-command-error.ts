import { UsageError } from "#lib/errors.ts";
import type { Mistake, Refusal } from "#operations/refusal.ts";
import { NotFoundError } from "./not-found-error.ts";

/** A refused input is a mistake of the command line; what is not there, or not allowed, is a failure. */
export function toCommandError(
  { statusCode, mistakes, message }: Refusal,
  word: (mistake: Mistake) => string = ({ field, value, rule }) =>
    [field, value, rule].filter(Boolean).join(" "),
): Error {
  if (mistakes.length > 0) return new UsageError(mistakes.map(word));
  if (statusCode === 404) return new NotFoundError(message);
  return [400, 409, 422].includes(statusCode) ? new UsageError([message]) : new Error(message);
}
