import { HOUR_MS } from "./horizon.ts";

/**
 * Whether the list has proven an hour: a full pass over its day began after the hour had settled, reached its end, and
 * nobody has found an event of the hour since it began. Times in epoch ms.
 */
export function isListProven(
  { startsAt, lastNewAt }: { readonly startsAt: number; readonly lastNewAt: number | null },
  fullPassStartedAt: number | null,
  settleMs: number,
): boolean {
  if (fullPassStartedAt === null || fullPassStartedAt < startsAt + HOUR_MS + settleMs) return false;
  return lastNewAt === null || lastNewAt < fullPassStartedAt;
}
