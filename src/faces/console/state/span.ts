import { showIso } from "#lib/format.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { formatLength } from "../style/words.ts";
import { useNow } from "./now.tsx";
import { useUrlState } from "./url-state.ts";

export const SPANS = {
  "1h": HOUR_MS,
  "6h": 6 * HOUR_MS,
  "24h": DAY_MS,
  "72h": 3 * DAY_MS,
  "7d": 7 * DAY_MS,
  "30d": 30 * DAY_MS,
} as const;
export type SpanName = keyof typeof SPANS;
const DEFAULT: SpanName = "24h";

/** The span that every number of a page is about. */
export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
  /** The name of a span that ends now; null for a span with fixed ends. */
  readonly name: SpanName | null;
  /** The part of the address that was not understood; null if there is none. */
  readonly ignored: string | null;
}

function readSpan(params: URLSearchParams, nowMs: number): Span {
  const [from, to, name] = [params.get("from"), params.get("to"), params.get("span")];
  // An alert's link ends some minutes after the alert. The service refuses a search that ends in the future.
  const fixed = { fromMs: readTime(from), toMs: to === null ? nowMs : Math.min(readTime(to), nowMs) };
  const isFixed = from !== null && fixed.fromMs < fixed.toMs;
  if (isFixed) return { ...fixed, name: null, ignored: null };
  const known = name !== null && Object.hasOwn(SPANS, name) ? (name as SpanName) : DEFAULT;
  const ignored =
    from !== null || to !== null
      ? `the span from ${from ?? "nowhere"} to ${to ?? "now"}`
      : name !== null && known !== name
        ? `the span ${name}`
        : null;
  return { fromMs: nowMs - SPANS[known], toMs: nowMs, name: known, ignored };
}

function readTime(text: string | null): number {
  if (text === null) return Number.NaN;
  return /^\d{1,15}$/.test(text) ? Number(text) : Date.parse(text);
}

export interface SpanState extends Span {
  /** Its length in words: `24 hours`. */
  readonly length: string;
  readonly choose: (name: SpanName) => void;
  readonly narrow: (fromMs: number, toMs: number) => void;
  readonly widen: () => void;
}

export function useSpan(): SpanState {
  const { params, change } = useUrlState();
  const nowMs = useNow();
  const span = readSpan(params, nowMs);
  const narrow = (fromMs: number, toMs: number) =>
    change({ span: null, from: showIso(fromMs), to: showIso(toMs) });
  return {
    ...span,
    length: formatLength(span.toMs - span.fromMs),
    narrow,
    choose: (name) => change({ span: name === DEFAULT ? null : name, from: null, to: null }),
    widen: () => {
      const half = (span.toMs - span.fromMs) / 2;
      narrow(span.fromMs - half, Math.min(span.toMs + half, nowMs));
    },
  };
}

/** Returns the width of a bucket for a chart with about 90 to 190 buckets. */
export function bucketWidth(spanMs: number): number {
  const minutes = [1, 5, 10, 30].map((count) => count * MINUTE_MS);
  const hours = [1, 3, 6, 24].map((count) => count * HOUR_MS);
  return [...minutes, ...hours].find((width) => spanMs / width <= 190) ?? 7 * DAY_MS;
}
