import { z } from "zod";
import { isObject } from "#lib/is-object.ts";

/**
 * Returns a preprocessing step that refuses everything but an object with a list in at least one of `members`. A
 * failure of the platform contains null lists, and reading null as "no events" would lose data silently.
 */
export function requireList(members: readonly string[]) {
  return (value: unknown, context: z.RefinementCtx): unknown => {
    if (isObject(value) && members.some((member) => Array.isArray(value[member]))) return value;
    context.addIssue({ code: "custom", message: `must be an object with a list in ${members.join(" or ")}` });
    return z.NEVER;
  };
}
