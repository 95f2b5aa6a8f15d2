import type { TimeSeriesProps } from "./time-series.tsx";

type Marker = NonNullable<TimeSeriesProps["markers"]>[number];

/** Returns the marks of a chart for what has a begin, and an end if it is over. */
export function toMarkers(spans: readonly (readonly [from: string, to: string | null])[]): Marker[] {
  return spans.flatMap(([from, to]) => [
    { atMs: Date.parse(from), kind: "opened" as const },
    ...(to === null ? [] : [{ atMs: Date.parse(to), kind: "resolved" as const }]),
  ]);
}
