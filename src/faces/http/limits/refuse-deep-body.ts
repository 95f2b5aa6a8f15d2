import { Refusal } from "#operations/refusal.ts";

/** No valid body is half as deep. */
export const MAX_DEPTH = 32;

/** Code that walks a body recursively may rely on this: no list or object is inside more than 31 others. */
export function refuseDeepBody(body: unknown): void {
  if (!isTooDeep(body)) return;
  const rule = `must not be nested more than ${MAX_DEPTH} deep`;
  throw new Refusal(400, { slug: "invalid-request", mistakes: [{ field: "body", rule }] });
}

/** Whether a list or object lies in more than 31 others. */
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
