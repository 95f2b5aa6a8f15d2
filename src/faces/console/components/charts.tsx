/** Charts. The library that draws them is loaded when the first one is shown. */
import { Skeleton } from "@mantine/core";
import { lazy, Suspense, useMemo } from "react";
import { ACTION_CLASSES, type ActionClass } from "#model/kinds.ts";
import { type Known, markIncomplete } from "../api/of-zones.ts";
import { useNotes } from "../api/queries.ts";
import { filterAction } from "../state/filters.ts";
import { useSpan } from "../state/span.ts";
import { useZones } from "../state/zones.ts";
import { ACTION_COLOURS } from "../style/words.ts";
import type { NoteMark, TimeSeriesProps } from "./time-series.tsx";

// Loaded while the page asks for the numbers of its first chart, not after them.
const loading = import("./time-series.tsx");
const Chart = lazy(() => loading);

/** The height of a legend of one line. */
const LEGEND_PX = 24;

/** Returns the height of a chart whose plot has this height. */
export function chartHeight(plotPx: number): number {
  return plotPx + LEGEND_PX;
}

const NO_NOTES: readonly NoteMark[] = [];

/** The chart, with the notes of its time on it. Its library is a script of its own. */
export function TimeSeries({ zone, ...props }: Omit<TimeSeriesProps, "notes"> & { readonly zone?: number }) {
  const { only } = useZones();
  const { timesMs, widthMs } = props;
  const [first = 0, last = 0] = [timesMs[0], timesMs.at(-1)];
  const { data } = useNotes(first, last + widthMs, zone ?? only?.id ?? null);
  const notes = useMemo(
    () => data?.items.map(({ id, at, text }) => ({ id, atMs: Date.parse(at), text })) ?? NO_NOTES,
    [data],
  );
  return (
    <Suspense fallback={<Skeleton height={chartHeight(props.height ?? 180)} animate={false} />}>
      <Chart {...props} notes={notes} />
    </Suspense>
  );
}

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

interface SparklineProps {
  readonly values: readonly number[];
  readonly width?: number;
  readonly height?: number;
  /** A description of the line for people who do not see it. */
  readonly label: string;
  readonly colour?: string;
}

/** A small bar per value. The highest bar is full; a bar of a value above 0 is never invisible. */
export function Sparkline({
  values,
  width = 96,
  height = 18,
  label,
  colour = "var(--lw-accent)",
}: SparklineProps) {
  const most = Math.max(...values, 1);
  const step = width / Math.max(values.length, 1);
  return (
    <svg width={width} height={height} role="img" aria-label={label} style={{ display: "block" }}>
      <line x1={0} x2={width} y1={height - 0.5} y2={height - 0.5} stroke="var(--lw-line)" />
      {values.map((value, index) => {
        const tall = value <= 0 ? 0 : Math.max(1.5, (value / most) * (height - 1));
        const key = index;
        return (
          <rect
            key={key}
            x={index * step}
            y={height - tall}
            width={Math.max(step - 0.6, 0.8)}
            height={tall}
            fill={colour}
          />
        );
      })}
    </svg>
  );
}
