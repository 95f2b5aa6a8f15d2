import { z } from "zod";

/**
 * A preprocessing step that refuses an object with none of `members`. Every member of a page may be null or absent, so
 * without it any stray JSON would read as "no events", which is the one misreading that loses data silently.
 */
export function requireMember(members: readonly string[]) {
  return (value: unknown, context: z.RefinementCtx): unknown => {
    const isPage = typeof value === "object" && value !== null && members.some((member) => member in value);
    if (isPage) return value;
    context.addIssue({ code: "custom", message: `must be an object with ${members.join(" or ")}` });
    return z.NEVER;
  };
}
