import { SegmentedControl } from "@mantine/core";
import { useMemo } from "react";
import { WIDTH_NAMES } from "#model/kinds.ts";
import type { RuleKey } from "../../api/rule.ts";
import { toDetectorChart } from "../../components/detector-lines.ts";
import { chartHeight, TimeSeries } from "../../components/lazy-time-series.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { toMarkers } from "../../components/to-markers.ts";
import { formatCount, formatLength } from "../../look/words.ts";
import { useSpan } from "../../state/span.ts";
import { useUrlState } from "../../state/url-state.ts";
import { useCurve } from "./use-curve.ts";

const PLOT_PX = 200;

/** The rule's counts with what the detector expected, and its threshold. */
export function RuleCurve(key: RuleKey) {
  const { width, widthMs, series, isCut, startMs, allowed } = useCurve(key);
  const { toMs, narrow, widen } = useSpan();
  const { change } = useUrlState();
  const { data } = series;
  const chart = useMemo(() => toDetectorChart(data?.points ?? []), [data]);
  const markers = useMemo(
    () => toMarkers((data?.spikes ?? []).map(({ openedAt, closedAt }) => [openedAt, closedAt])),
    [data],
  );
  const total = (data?.points ?? []).reduce((sum, { count }) => sum + count, 0);
  const length = formatLength(toMs - startMs);
  return (
    <QueryPanel
      title={`Events per ${width}`}
      about={
        <>
          {isCut ? `the last ${length} of the span` : length} · {formatCount(total)} events
          {width === "day" ? " · a day has no threshold: the detector looks at an hour at most" : ""}
        </>
      }
      actions={
        <SegmentedControl
          aria-label="Width of a bar"
          data={WIDTH_NAMES.map((value) => ({ value, label: value, disabled: !allowed(value) }))}
          value={width}
          onChange={(name) => change({ width: name }, { replace: true })}
        />
      }
      query={series}
      height={chartHeight(PLOT_PX)}
      asking={`${length} of the rule's counts`}
    >
      {({ points }) => (
        <TimeSeries
          {...chart}
          lines={width === "day" ? chart.lines?.slice(1) : chart.lines}
          widthMs={widthMs}
          markers={markers}
          height={PLOT_PX}
          onBrush={narrow}
          onWiden={widen}
          label={`${formatCount(total)} events per ${width} over ${length}, with the expected count and the threshold; ${points.filter(({ isSpiking }) => isSpiking).length} bars in a spike`}
        />
      )}
    </QueryPanel>
  );
}
