/**
 * Retry-After as milliseconds from now: seconds or an HTTP date. A date is measured against the Date header of the same
 * answer when there is one, so a wrong local clock does not matter. Junk reads as null, the past as 0, a number of any
 * length as what it says, which may be Infinity.
 */
export function parseRetryAfter(
  value: string | undefined,
  serverDate: string | undefined,
  nowMs: number,
): number | null {
  const text = value?.trim() ?? "";
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1_000;
  const at = /[a-z]/i.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at)) return null;
  const from = Date.parse(serverDate ?? "");
  return Math.max(at - (Number.isNaN(from) ? nowMs : from), 0);
}
