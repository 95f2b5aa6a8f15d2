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
  const code = "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
  // If a name has several addresses that all fail, there is no message.
  return cause.message === "" ? code : cause.message;
}
