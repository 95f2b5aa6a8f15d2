const BLOCKS = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"] as const;

/**
 * Draws counts as block characters, at most `maxColumns`. Merged columns show their maximum, so that a spike stays
 * visible.
 */
export function drawSparkline(counts: readonly number[], maxColumns: number): string {
  if (counts.length === 0) return "";
  const span = Math.ceil(counts.length / maxColumns);
  const columns: number[] = [];
  // Groups from the newest backwards, so that the last column is complete.
  for (let end = counts.length; end > 0; end -= span) {
    columns.unshift(
      counts.slice(Math.max(end - span, 0), end).reduce((most, count) => Math.max(most, count), 0),
    );
  }
  const most = columns.reduce((highest, count) => Math.max(highest, count), 1);
  return columns
    .map((count) => BLOCKS[Math.round((count / most) * (BLOCKS.length - 1))] ?? BLOCKS[0])
    .join("");
}
