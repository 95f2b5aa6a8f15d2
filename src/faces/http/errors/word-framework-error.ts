/** Maximum length of a parameter in a path. A page token is longer than any other. */
export const MAX_PARAM_CHARS = 2_048;

/** Adds the broken rule to the framework's error. Keeps the framework's words if they contain the rule. */
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
