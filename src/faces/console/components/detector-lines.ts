import type { RuleSeries } from "../api/rule.ts";
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
  return {
    timesMs: points.map(({ startsAtMs }) => startsAtMs),
    series: [
      {
        id: "count",
        label: alert === null ? "events" : "other events",
        colour: "var(--lw-accent)",
        values: counts(false),
      },
      {
        id: "spike",
        label: alert === null ? "in a spike" : "during the alert",
        colour: "var(--lw-fire)",
        values: counts(true),
      },
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
