/** Of one parameter in a path: a page token is longer than any other. */
export const MAX_PARAM_CHARS = 2_048;

/** What the framework's own words leave out: the rule that was broken. Its words where they say it. */
export function wordFrameworkError(
  { code, message }: { readonly code?: string; readonly message?: string },
  { bodyLimit }: { readonly bodyLimit?: number | undefined },
): string | undefined {
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return `The request body must be at most ${bodyLimit} bytes.`;
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return "The request body must be sent as application/json.";
  if (code === "FST_ERR_MAX_PARAM_LENGTH")
    return `No part of the path may have more than ${MAX_PARAM_CHARS} characters.`;
  return message;
}
