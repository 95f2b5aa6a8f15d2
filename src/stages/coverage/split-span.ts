/** Paging a larger result costs more for every page and repeats more after a crash. */
const MAX_EVENTS = 5_000;
const TARGET_EVENTS = 4_000;

/**
 * Divides a span into equal parts, in order, so that each holds a limited number of events. Returns null when that is
 * not needed.
 */
export function splitSpan(from: number, to: number, total: number): { from: number; to: number }[] | null {
  if (total <= MAX_EVENTS || to - from < 2) return null;
  const parts = Math.min(Math.ceil(total / TARGET_EVENTS), to - from);
  const cut = (index: number) => from + Math.floor(((to - from) * index) / parts);
  return Array.from({ length: parts }, (_, index) => ({ from: cut(index), to: cut(index + 1) }));
}
