/**
 * Returns a key of the 28-day overview as an ISO day (`yyyy-MM-dd`). The platform writes `dd-MM-yyyy`; ISO days and
 * date-times are accepted too. Returns null for a key that is no day of the calendar, which the caller skips.
 */
export function parseMetricsDay(key: string): string | null {
  const european = /^(\d{2})-(\d{2})-(\d{4})$/.exec(key);
  const iso =
    european === null ? /^\d{4}-\d{2}-\d{2}/.exec(key)?.[0] : `${european[3]}-${european[2]}-${european[1]}`;
  if (iso === undefined) return null;
  const at = Date.parse(`${iso}T00:00:00Z`);
  return Number.isNaN(at) || !new Date(at).toISOString().startsWith(iso) ? null : iso;
}
