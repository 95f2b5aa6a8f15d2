import { Skeleton } from "@mantine/core";
import { lazy, Suspense } from "react";
import type { TimeSeriesProps } from "./time-series.tsx";

const Chart = lazy(() => import("./time-series.tsx"));

/** The chart and its library, loaded when the first chart is shown. */
export function TimeSeries(props: TimeSeriesProps) {
  return (
    <Suspense fallback={<Skeleton height={(props.height ?? 180) + 22} animate={false} />}>
      <Chart {...props} />
    </Suspense>
  );
}
