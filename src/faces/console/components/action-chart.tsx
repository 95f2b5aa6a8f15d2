import { useMemo } from "react";
import { ACTION_CLASSES, type ActionClass } from "#model/kinds.ts";
import { type Known, markIncomplete } from "../api/completeness.ts";
import { ACTION_COLOURS } from "../look/words.ts";
import { filterAction } from "../state/filters.ts";
import { useSpan } from "../state/span.ts";
import { TimeSeries } from "./lazy-time-series.tsx";
import type { TimeSeriesProps } from "./time-series.tsx";

interface Props extends Pick<TimeSeriesProps, "timesMs" | "widthMs" | "height" | "label" | "markers"> {
  readonly counts: Readonly<Record<ActionClass, readonly number[]>>;
  /** Actions that are shown even without events. */
  readonly always: readonly ActionClass[];
  readonly known: Known;
}

/** Events over time by action. What is dragged is the new span of the page, a name of the legend is a filter. */
export function ActionChart({ counts, always, known, ...chart }: Props) {
  const { timesMs, widthMs } = chart;
  const span = useSpan();
  const series = useMemo(() => {
    const shown = ACTION_CLASSES.filter(
      (name) => always.includes(name) || counts[name].some((one) => one > 0),
    );
    return shown.map((id) => ({ id, label: id, colour: ACTION_COLOURS[id], values: counts[id] }));
  }, [counts, always]);
  const incomplete = useMemo(() => markIncomplete(timesMs, widthMs, known), [timesMs, widthMs, known]);
  return (
    <TimeSeries
      {...chart}
      series={series}
      incomplete={incomplete}
      onBrush={span.narrow}
      onWiden={span.widen}
      onPick={filterAction}
    />
  );
}
