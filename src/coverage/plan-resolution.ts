import type { Span } from "../model/span.ts";

/** Events this close together are asked for in one search. */
const GAP_MS = 60_000;
/** Searches made for the unresolved events of one hour at once. */
const MAX_SEARCHES = 10;

/**
 * The spans to search for events at these times (epoch ms, ascending) and for as little else as ten searches allow: times less
 * than a minute apart share a span, and where that leaves too many, the nearest spans are joined.
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
