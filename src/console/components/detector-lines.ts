import type { RuleSeries } from "../api/rule.ts";
import type { TimeSeriesProps } from "./time-series.tsx";

/** Returns the counts of a rule, those of spikes apart, with the detector's threshold and expectation. */
export function toDetectorChart(
  points: RuleSeries["points"],
): Pick<TimeSeriesProps, "timesMs" | "series" | "lines"> {
  const counts = (isSpiking: boolean) =>
    points.map((point) => (point.isSpiking === isSpiking ? point.count : 0));
  return {
    timesMs: points.map(({ startsAtMs }) => startsAtMs),
    series: [
      { id: "count", label: "events", colour: "var(--lw-accent)", values: counts(false) },
      { id: "spike", label: "in a spike", colour: "var(--lw-fire)", values: counts(true) },
    ],
    lines: [
      {
        id: "threshold",
        label: "threshold",
        colour: "var(--lw-warn)",
        isDashed: true,
        values: points.map(({ threshold }) => threshold),
      },
      {
        id: "expected",
        label: "expected",
        colour: "var(--lw-dim)",
        values: points.map(({ usual }) => usual),
      },
    ],
  };
}
