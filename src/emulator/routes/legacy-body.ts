import type { Call } from "../emulator-context.ts";
import { BODY_MISTAKES, readJson } from "../read-json.ts";
import { legacyError, type Reply } from "../reply.ts";
import { JSON_ONLY } from "./media-types.ts";

/** Returns the JSON object of a pull zone or DNS zone request, or the legacy error for any other body. */
export function readLegacyBody(call: Call): { value: Record<string, unknown> } | { refusal: Reply } {
  const read = readJson(call, JSON_ONLY);
  const invalid = (message: string) => ({ refusal: legacyError(400, "model.invalid", "", message) });
  if ("value" in read) {
    const { value } = read;
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value: { ...value } };
    return invalid("The request body must be a JSON object.");
  }
  if (read.mistake === "too deep") return invalid(BODY_MISTAKES["too deep"]);
  if (read.mistake === "not JSON") return invalid("The request body must be a JSON object.");
  const message = "The request body must be sent as application/json.";
  return { refusal: legacyError(415, "model.unsupported_media_type", "", message) };
}
