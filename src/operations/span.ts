import { DAY_MS } from "#lib/units.ts";
import { startOfDay } from "#model/horizon.ts";
import { ListZones, Time } from "./fields.ts";
import { Refusal } from "./refusal.ts";

/** @throws {Refusal} 422 if the end is not after the begin */
export function checkOrder(
  { name, ms }: { name: string; ms: number | undefined },
  end: { name: string; ms: number | undefined },
): void {
  if (ms === undefined || end.ms === undefined || end.ms > ms) return;
  const rule = `must be after ${name}, ${new Date(ms).toISOString()}`;
  const value = new Date(end.ms).toISOString();
  throw new Refusal(422, { slug: "invalid-span", mistakes: [{ field: end.name, value, rule }] });
}

/** @throws {Refusal} 422 if the end is not after the begin, or if the range has too many steps */
export function checkSpan(
  fromMs: number,
  toMs: number,
  { max, widthMs, what }: { max: number; widthMs: number; what: string },
): void {
  checkOrder({ name: "from", ms: fromMs }, { name: "to", ms: toMs });
  const steps = Math.ceil((toMs - fromMs) / widthMs);
  if (steps <= max) return;
  const rule = `must be at most ${max} ${what} before to, but is ${steps} ${what} before it`;
  const value = new Date(fromMs).toISOString();
  throw new Refusal(422, { slug: "span-too-long", mistakes: [{ field: "from", value, rule }] });
}

/** The query of a route that answers by UTC day. */
export const DAYS_QUERY = {
  zone: ListZones,
  from: Time.optional().describe("Default: 400 days before `to`."),
  to: Time.optional().describe("Default: now."),
};

/**
 * Returns whole UTC days: the begin of the first and the end of the last, epoch ms.
 * @throws {Refusal} 422 as `checkSpan` does
 */
export function readDays(
  asked: { readonly from?: number | undefined; readonly to?: number | undefined },
  { nowMs, max }: { readonly nowMs: number; readonly max: number },
): { readonly fromMs: number; readonly toMs: number } {
  const to = asked.to ?? nowMs;
  const fromMs = startOfDay(asked.from ?? to - 400 * DAY_MS);
  checkSpan(fromMs, to, { max, widthMs: DAY_MS, what: "days" });
  return { fromMs, toMs: startOfDay(to - 1) + DAY_MS };
}

/**
 * `keptFrom` is the first moment from which on minutes are kept; null if all are.
 * @throws {Refusal} 422 if the span begins before that
 */
export function checkMinutes(fromMs: number, keptFrom: number | null): void {
  if (keptFrom === null || fromMs >= keptFrom) return;
  const rule = `must be at or after ${new Date(keptFrom).toISOString()} with width=minute, because minutes of older archive days are deleted; use width=hour`;
  const value = new Date(fromMs).toISOString();
  throw new Refusal(422, { slug: "minutes-not-kept", mistakes: [{ field: "from", value, rule }] });
}
