import { useMemo } from "react";
import { ACTION_CLASSES, GROUP_KIND, SPIKE_KINDS } from "#model/kinds.ts";
import { useAlerts } from "../../api/alerts.ts";
import { markIncomplete, useCompleteness } from "../../api/completeness.ts";
import { type Overview, useOverview } from "../../api/overview.ts";
import { Completeness } from "../../components/completeness.tsx";
import { chartHeight, TimeSeries } from "../../components/lazy-time-series.tsx";
import { Panel } from "../../components/panel.tsx";
import { Empty, Partial, QueryView } from "../../components/states.tsx";
import { ACTION_COLOURS, formatCount, formatLength } from "../../look/words.ts";
import { filterAction } from "../../state/filters.ts";
import { useSpan } from "../../state/span.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";

const PLOT_PX = 190;

/** Events over time by action, with the alerts of the span on it. */
export function EventChart() {
  const { zones, only } = useZones();
  const span = useSpan();
  const overview = useOverview();
  const known = useCompleteness(zones, span).data;
  const alerts = useAlerts(
    {
      since: Math.floor(span.fromMs),
      until: Math.ceil(span.toMs),
      kind: [...SPIKE_KINDS, GROUP_KIND],
      limit: 200,
      ...(only === null ? {} : { zone: only.id }),
    },
    "chart",
  );
  const { data } = overview;
  const counted = useMemo(() => (data === undefined ? null : sumUp(data)), [data]);
  const incomplete = useMemo(
    () => (counted === null ? [] : markIncomplete(counted.timesMs, counted.widthMs, known)),
    [counted, known],
  );
  const markers = useMemo(() => {
    const ids = new Set(zones.map(({ id }) => id));
    return (alerts.data?.items ?? [])
      .filter(({ zoneId }) => zoneId !== null && ids.has(zoneId))
      .flatMap(({ firedAt, resolvedAt, headline, id }) => [
        { atMs: Date.parse(firedAt), kind: "opened" as const, label: headline ?? `alert ${id}` },
        ...(resolvedAt === null
          ? []
          : [{ atMs: Date.parse(resolvedAt), kind: "resolved" as const, label: `alert ${id}` }]),
      ]);
  }, [alerts.data, zones]);
  const length = formatLength(span.toMs - span.fromMs);
  const about =
    counted === null ? null : (
      <>
        per {formatLength(counted.widthMs).replace(/^1 (?=\w)/, "")} · {length}
        {known === undefined ? null : (
          <>
            {" "}
            · <Completeness of={known.completeness} zones={zones.length} />
          </>
        )}
      </>
    );
  return (
    <Panel title="Events by action" about={about} flush>
      <QueryView query={overview} height={chartHeight(PLOT_PX)} asking={`${length} of ${zones.length} zones`}>
        {() =>
          counted === null ? null : (
            <>
              {(known?.failed.length ?? 0) > 0 ? (
                <Partial>
                  {known?.failed
                    .map(
                      ({ zone, problem }) => `Coverage of ${zoneTitle(zone)} is missing: ${problem.message}`,
                    )
                    .join(" ")}
                </Partial>
              ) : null}
              {counted.total === 0 ? (
                <Empty>No event in this span. Choose a longer span in the header.</Empty>
              ) : null}
              <TimeSeries
                timesMs={counted.timesMs}
                widthMs={counted.widthMs}
                series={counted.series}
                incomplete={incomplete}
                markers={markers}
                height={PLOT_PX}
                label={`${formatCount(counted.total)} events over ${length}, by action; ${markers.length} alert marks`}
                onBrush={span.narrow}
                onWiden={span.widen}
                onPick={filterAction}
              />
            </>
          )
        }
      </QueryView>
    </Panel>
  );
}

/** Adds the zones up. Steps without events are not in the answer, and are zero. */
function sumUp({ zones, from, to, stepSeconds }: Overview) {
  const widthMs = stepSeconds * 1_000;
  const firstMs = Math.floor(Date.parse(from) / widthMs) * widthMs;
  const steps = Math.max(0, Math.ceil((Date.parse(to) - firstMs) / widthMs));
  const counts = Object.fromEntries(
    ACTION_CLASSES.map((name) => [name, Array.from({ length: steps }, () => 0)]),
  );
  for (const { startsAtMs, ...point } of zones.flatMap(({ points }) => points)) {
    const step = Math.round((startsAtMs - firstMs) / widthMs);
    for (const name of ACTION_CLASSES) {
      const column = counts[name];
      if (column !== undefined && step >= 0 && step < steps) column[step] = (column[step] ?? 0) + point[name];
    }
  }
  const series = ACTION_CLASSES.map((name) => ({
    id: name,
    label: name,
    colour: ACTION_COLOURS[name],
    values: counts[name] ?? [],
  })).filter(({ id, values }) => id !== "other" || values.some((count) => count > 0));
  return {
    widthMs,
    series,
    timesMs: Array.from({ length: steps }, (_, step) => firstMs + step * widthMs),
    total: series.reduce((sum, { values }) => sum + values.reduce((all, count) => all + count, 0), 0),
  };
}
