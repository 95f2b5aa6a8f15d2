import { startOfDay, toDay } from "#model/horizon.ts";

/** Records this close together are searched in one span. */
const JOINED_MS = 60_000;

/** A span within one UTC day, epoch ms, both ends included. */
export interface DaySpan {
  readonly day: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Returns the spans that contain these moments (epoch ms, any order): few if they lie together, narrow if they do
 * not.
 */
export function planSpans(moments: readonly number[]): DaySpan[] {
  const spans: { day: string; fromMs: number; toMs: number }[] = [];
  for (const at of [...moments].sort((a, b) => a - b)) {
    const last = spans.at(-1);
    if (last !== undefined && at - last.toMs <= JOINED_MS && startOfDay(at) === startOfDay(last.fromMs))
      last.toMs = at;
    else spans.push({ day: toDay(at), fromMs: at, toMs: at });
  }
  return spans;
}
