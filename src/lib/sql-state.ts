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
