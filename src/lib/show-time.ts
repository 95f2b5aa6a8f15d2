/** Formats epoch ms as UTC, without seconds when they are zero. */
export function showTime(at: number): string {
  const iso = new Date(at).toISOString();
  return at % 60_000 === 0 ? iso.slice(0, 16).replace("T", " ") : iso.slice(0, 19).replace("T", " ");
}

/** The same for an ISO time, whose fraction of a second is left out. */
export function showSecond(iso: string): string {
  const at = Date.parse(iso);
  return showTime(at - (at % 1_000));
}
