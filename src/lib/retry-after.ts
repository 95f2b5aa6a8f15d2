/**
 * Returns Retry-After as milliseconds from now, from seconds or an HTTP date. A date is compared with the Date header
 * of the same answer if there is one, so that a wrong local clock does not matter. Returns null for invalid text, 0
 * for the past. A number of any length counts, so the result may be Infinity.
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
