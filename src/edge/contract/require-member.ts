import { z } from "zod";
import { isObject } from "../../is-object.ts";

/**
 * A preprocessing step that refuses everything but an object with `member`. Where every member may be null, any stray JSON
 * would otherwise read as an answer that holds nothing.
 */
export function requireMember(member: string) {
  return (value: unknown, context: z.RefinementCtx): unknown => {
    if (isObject(value) && member in value) return value;
    context.addIssue({ code: "custom", message: `must be an object with ${member}` });
    return z.NEVER;
  };
}
