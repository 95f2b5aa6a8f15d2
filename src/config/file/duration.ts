import { z } from "zod";

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const LONGEST_MS = 30 * 86_400_000;

export function toMs(text: string): number {
  return [...text.matchAll(/(\d+)([smhd])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (UNIT_MS[unit ?? ""] ?? 0),
    0,
  );
}

const DURATION_RULE = "must be a time such as 30s, 5m, 4h or 1h30m, at most 30d";
/** The result is in milliseconds. */
export const duration = z
  .string(DURATION_RULE)
  .regex(/^(\d{1,6}[smhd])+$/, DURATION_RULE)
  .refine((text) => toMs(text) <= LONGEST_MS, DURATION_RULE)
  .transform(toMs);
