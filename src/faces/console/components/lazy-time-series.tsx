import { Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { TimeSeriesProps } from "./time-series.tsx";

// Loaded while the page asks for the numbers of its first chart, not after them.
const loading = import("./time-series.tsx");
const Chart = lazy(() => loading);

/** The chart. Its library is a script of its own. */
export function TimeSeries(props: TimeSeriesProps) {
  return (
    <Suspense fallback={<Skeleton height={(props.height ?? 180) + 22} animate={false} />}>
      <Chart {...props} />
    </Suspense>
  );
}
