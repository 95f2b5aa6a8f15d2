interface FailedQuery extends Error {
  readonly query: string;
}

/**
 * Whether the query builder wrapped this failure: its message then is the query with all of its parameters, which are
 * addresses, texts of requests, hashes of keys.
 */
export function isFailedQuery(error: Error): error is FailedQuery {
  return "query" in error && typeof error.query === "string" && "params" in error;
}

/** What may be said of an error where it is kept or shown: of a query that failed, why, and not what it was asked. */
export function messageOf(error: Error): string {
  if (!isFailedQuery(error)) return error.message;
  const { cause } = error;
  if (!(cause instanceof Error)) return "a query failed";
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
  // Where a name has several addresses that all fail, there is no message.
  return cause.message === "" ? code : cause.message;
}
