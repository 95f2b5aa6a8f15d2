import { Refusal } from "../../refusal.ts";

/** Where an hour stands; `not yet` has not begun. */
export const STANDINGS = ["sealed", "searched", "open", "gap", "unwatched", "not yet"] as const;

/** @throws {Refusal} 422 where the end is not after the begin, or there are more steps between than are answered. */
export function checkSpan(
  fromMs: number,
  toMs: number,
  { max, widthMs, what }: { max: number; widthMs: number; what: string },
): void {
  if (toMs <= fromMs) {
    const rule = `must be after from, ${new Date(fromMs).toISOString()}`;
    const value = new Date(toMs).toISOString();
    throw new Refusal(422, {
      slug: "invalid-span",
      detail: `to: ${rule}`,
      mistakes: [{ field: "to", value, rule }],
    });
  }
  const steps = Math.ceil((toMs - fromMs) / widthMs);
  if (steps <= max) return;
  const rule = `must be at most ${max} ${what} before to: these are ${steps}`;
  const value = new Date(fromMs).toISOString();
  throw new Refusal(422, {
    slug: "span-too-long",
    detail: `from: ${rule}`,
    mistakes: [{ field: "from", value, rule }],
  });
}
