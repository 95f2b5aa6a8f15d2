/** The lines and marks of a chart. */
import type { RuleSeries } from "../api/queries.ts";
import type { TimeSeriesProps } from "./time-series.tsx";

/**
 * Returns the counts of a rule, those of an alert or of every spike apart, with the detector's threshold and
 * expectation.
 */
export function toDetectorChart(
  points: RuleSeries["points"],
  alert: { readonly from: string; readonly to: string } | null = null,
): Pick<TimeSeriesProps, "timesMs" | "series" | "lines"> {
  const isApart = ({ startsAtMs, isSpiking }: (typeof points)[number]) =>
    alert === null ? isSpiking : startsAtMs >= Date.parse(alert.from) && startsAtMs < Date.parse(alert.to);
  const counts = (wanted: boolean) => points.map((point) => (isApart(point) === wanted ? point.count : 0));
  const make = <Value>(id: string, label: string, colour: string, values: readonly Value[]) => ({
    id,
    label,
    values,
    colour: `var(--lw-${colour})`,
  });
  const thresholds = points.map(({ threshold }) => threshold);
  const usual = points.map((point) => point.usual);
  return {
    timesMs: points.map(({ startsAtMs }) => startsAtMs),
    series: [
      make("count", alert === null ? "events" : "other events", "accent", counts(false)),
      make("spike", alert === null ? "in a spike" : "during the alert", "fire", counts(true)),
    ],
    lines: [
      { ...make("threshold", "threshold", "warn", thresholds), isDashed: true },
      make("expected", "expected", "dim", usual),
    ],
  };
}

type Marker = NonNullable<TimeSeriesProps["markers"]>[number];

/** Returns the marks of a chart for what has a begin, and an end if it is over. */
export function toMarkers(spans: readonly (readonly [from: string, to: string | null])[]): Marker[] {
  return spans.flatMap(([from, to]) => [
    { atMs: Date.parse(from), kind: "opened" as const },
    ...(to === null ? [] : [{ atMs: Date.parse(to), kind: "resolved" as const }]),
  ]);
}
