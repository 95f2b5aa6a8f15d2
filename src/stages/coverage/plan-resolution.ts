import type { Span } from "#model/horizon.ts";

/** Events this close together share one search. */
const GAP_MS = 60_000;
/** Maximum number of searches at once for the unresolved events of one hour. */
const MAX_SEARCHES = 10;

/**
 * Returns the spans to search for events at these times (epoch ms, ascending), with as little else as ten searches
 * allow. Times less than a minute apart share a span. If that leaves too many spans, the nearest ones are joined.
 */
export function planResolution(times: readonly number[]): Span[] {
  const spans: { from: number; to: number }[] = [];
  for (const at of times) {
    const last = spans.at(-1);
    if (last !== undefined && at - last.to < GAP_MS) last.to = at + 1;
    else spans.push({ from: at, to: at + 1 });
  }
  while (spans.length > MAX_SEARCHES) joinNearest(spans);
  return spans;
}

function joinNearest(spans: { from: number; to: number }[]): void {
  const distances = spans.slice(1).map(({ from }, index) => from - (spans[index]?.to ?? from));
  const nearest = distances.indexOf(Math.min(...distances));
  const [before, after] = spans.splice(nearest, 2);
  if (before !== undefined && after !== undefined)
    spans.splice(nearest, 0, { from: before.from, to: after.to });
}
