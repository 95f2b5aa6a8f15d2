import { Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { TimeSeriesProps } from "./time-series.tsx";

// Loaded while the page asks for the numbers of its first chart, not after them.
const loading = import("./time-series.tsx");
const Chart = lazy(() => loading);

/** The height of a legend of one line. */
const LEGEND_PX = 24;

/** Returns the height of a chart whose plot has this height. */
export function chartHeight(plotPx: number): number {
  return plotPx + LEGEND_PX;
}

/** The chart. Its library is a script of its own. */
export function TimeSeries(props: TimeSeriesProps) {
  return (
    <Suspense fallback={<Skeleton height={chartHeight(props.height ?? 180)} animate={false} />}>
      <Chart {...props} />
    </Suspense>
  );
}
