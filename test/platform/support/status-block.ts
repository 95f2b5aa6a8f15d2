/** A status block, by default the one of a failure sent with 202, saying nothing. */
export function block(over: Record<string, unknown>): Record<string, unknown> {
  return { statusCode: 202, success: false, message: null, errorKey: null, ...over };
}
