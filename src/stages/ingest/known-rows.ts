import { hash } from "node:crypto";

/** A zone with more rows than this in its newest minutes has news at every poll, so that its rows are not remembered. */
const MOST_ROWS = 5_000;

/** Rows of searches that are stored: for each log id the hash of its bytes. */
export type KnownRows = Map<string, string>;

/** Returns which rows are stored byte for byte, by the places of the others, and whether one of those has a known id. */
export function findNews(
  known: KnownRows,
  rows: readonly unknown[],
  raws: readonly Buffer[],
): { readonly places: readonly number[]; readonly hasKnownId: boolean } {
  let hasKnownId = false;
  const places = [...raws.entries()].flatMap(([place, raw]) => {
    const hashed = hashRow(raw);
    const before = known.get(idOf(rows[place]) ?? hashed);
    if (before !== undefined && before !== hashed) hasKnownId = true;
    return before === hashed ? [] : [place];
  });
  return { places, hasKnownId };
}

/** Remembers rows that were stored. Returns false if they are too many. */
export function rememberRows(known: KnownRows, rows: readonly unknown[], raws: readonly Buffer[]): boolean {
  if (known.size + raws.length > MOST_ROWS) return false;
  for (const [place, raw] of raws.entries()) {
    const hashed = hashRow(raw);
    known.set(idOf(rows[place]) ?? hashed, hashed);
  }
  return true;
}

function hashRow(raw: Buffer): string {
  return hash("sha1", raw, "base64");
}

/** Returns null for a row that is no event: its hash stands for it. */
function idOf(row: unknown): string | null {
  const { logId } = (row ?? {}) as { logId?: unknown };
  return typeof logId === "string" ? logId : null;
}
