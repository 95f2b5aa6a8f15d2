import { Refusal } from "#operations/refusal.ts";

/** Maximum depth of a body. No valid body is half as deep. */
export const MAX_DEPTH = 32;

/** Refuses a body that is nested too deeply. Code that walks a body recursively relies on this. */
export function refuseDeepBody(body: unknown): void {
  if (!isTooDeep(body)) return;
  const rule = `must not be nested more than ${MAX_DEPTH} deep`;
  throw new Refusal(400, { slug: "invalid-request", mistakes: [{ field: "body", rule }] });
}

/** Returns whether a list or object lies in more than 31 others. */
export function isTooDeep(body: unknown): boolean {
  let level = [body].filter(isContainer);
  for (let depth = 1; level.length > 0; depth += 1) {
    if (depth > MAX_DEPTH) return true;
    level = level.flatMap(Object.values).filter(isContainer);
  }
  return false;
}

function isContainer(value: unknown): value is object {
  return typeof value === "object" && value !== null && !ArrayBuffer.isView(value);
}
