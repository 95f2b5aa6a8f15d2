/** The head of a rule and its curve. */

import { SegmentedControl } from "@mantine/core";
import { useMemo } from "react";
import { formatNumber } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { WIDTH_SECONDS } from "#model/horizon.ts";
import { WIDTH_NAMES, type WidthName } from "#model/kinds.ts";
import { type RuleKey, useRuleSeries } from "../../api/queries.ts";
import { SubtleButton } from "../../components/buttons.tsx";
import { toDetectorChart, toMarkers } from "../../components/chart-lines.ts";
import { chartHeight, TimeSeries } from "../../components/charts.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { useSpan } from "../../state/span.ts";
import { usePageLink, useUrlState } from "../../state/url-state.ts";
import { useZoneTitle } from "../../state/zones.ts";
import { formatCount, formatLength, NO_VALUE } from "../../style/words.ts";
import classes from "./rule.module.css";

/** The rule, whether it spikes now, the sensitivity in force, and the ways to its events and alerts. */
export function RuleHead({ zone, rule }: RuleKey) {
  const zoneName = useZoneTitle();
  const link = usePageLink();
  const { data } = useCurve({ zone, rule }).series;
  const open = data?.spikes.find(({ closedAt }) => closedAt === null);
  const ways = {
    "See its events": link("/explorer", { zone: String(zone), is: `rule:${rule}` }),
    "See its alerts": link("/alerts", { zone: String(zone), rule, state: "all" }),
  };
  return (
    <section className="lw-head" data-firing={open !== undefined || undefined}>
      <h1 className={classes["title"]}>
        Rule <Payload text={rule} none={NO_VALUE} /> {data?.title ?? ""}
      </h1>
      <div className="lw-facts">
        <span>{zoneName(zone)}</span>
        {open === undefined ? null : <b className="lw-fire">● spikes now</b>}
        {data === undefined ? null : (
          <span>
            in force: z <b>{formatNumber(data.settings.z)}</b>, floor{" "}
            <b>{formatNumber(data.settings.floor)}</b> events
          </span>
        )}
      </div>
      <div className="lw-bar">
        {Object.entries(ways).map(([word, href]) => (
          <SubtleButton key={word} size="xs" word={word} href={href} />
        ))}
      </div>
    </section>
  );
}

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

/** The longest span that the service shows at each width. */
const LONGEST_MS: Readonly<Record<WidthName, number>> = {
  minute: 3 * DAY_MS,
  hour: 60 * DAY_MS,
  day: 60 * DAY_MS,
};

function pickWidth(asked: string | null, spanMs: number): WidthName {
  const known = WIDTH_NAMES.find((name) => name === asked);
  if (known !== undefined && spanMs <= LONGEST_MS[known]) return known;
  if (spanMs <= DAY_MS) return "minute";
  return spanMs <= 14 * DAY_MS ? "hour" : "day";
}

/** The counts of the rule over the span of the header. The parts of the page share them. */
export function useCurve(key: RuleKey) {
  const { params } = useUrlState();
  const { fromMs, toMs } = useSpan();
  const width = pickWidth(params.get("width"), toMs - fromMs);
  const from = Math.max(fromMs, toMs - LONGEST_MS[width]);
  const widthMs = WIDTH_SECONDS[width] * 1_000;
  const startMs = Math.floor(from / widthMs) * widthMs;
  const series = useRuleSeries({ ...key, width, from: startMs, to: Math.ceil(toMs) });
  return {
    width,
    widthMs,
    series,
    isCut: from > fromMs,
    startMs,
    allowed: (name: WidthName) => toMs - fromMs <= LONGEST_MS[name],
  };
}
