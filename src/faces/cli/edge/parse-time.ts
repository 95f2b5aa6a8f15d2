const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Eleven digits. A smaller number is a time in seconds, typed by mistake. */
const FIRST_EPOCH_MS = 10_000_000_000;

export const TIME_RULE =
  "epoch milliseconds, ISO-8601 (UTC if it names no zone), now, or relative such as -2h";

function parseIso(text: string): number | null {
  if (!/^\d{4}-\d{2}-\d{2}(?:T\d{2}:\d{2}.*)?$/.test(text)) return null;
  const hasZone = !text.includes("T") || /(?:Z|[+-]\d{2}:?\d{2})$/i.test(text);
  const at = Date.parse(hasZone ? text : `${text}Z`);
  const day = Number(text.slice(8, 10));
  // Date.parse rolls 02-30 over into March.
  const isReal = !Number.isNaN(at) && new Date(`${text.slice(0, 10)}T00:00:00Z`).getUTCDate() === day;
  return isReal ? at : null;
}

/** Parses a time as people type it. Returns epoch ms, or null if the text is no time. */
export function parseTime(text: string, nowMs: number): number | null {
  if (text === "now") return nowMs;
  const relative = /^([+-])(\d{1,9})(ms|s|m|h|d)$/.exec(text);
  if (relative !== null) {
    const spanMs = Number(relative[2]) * (UNIT_MS[relative[3] ?? ""] ?? 0);
    return relative[1] === "-" ? nowMs - spanMs : nowMs + spanMs;
  }
  if (/^\d{1,15}$/.test(text)) return Number(text) >= FIRST_EPOCH_MS ? Number(text) : null;
  return parseIso(text);
}
