import type { Call } from "../emulator-context.ts";
import { legacyError, type Reply } from "../reply.ts";

/** The JSON object of a pull zone or DNS zone request, or the legacy error for what is not one. */
export function readLegacyBody(call: Call): { value: Record<string, unknown> } | { refusal: Reply } {
  try {
    const value: unknown = JSON.parse(call.body);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return { value: { ...value } };
  } catch {
    // Answered below, as any other body that is not an object.
  }
  return { refusal: legacyError(400, "model.invalid", "", "The request body must be a JSON object.") };
}
