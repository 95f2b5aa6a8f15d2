import { useMemo } from "react";
import { useAlerts } from "../../api/alerts.ts";
import { type Trend, useTrend } from "../../api/trend.ts";
import { Completeness } from "../../components/completeness.tsx";
import { TimeSeries } from "../../components/lazy-time-series.tsx";
import { Panel } from "../../components/panel.tsx";
import { Empty, Partial, QueryView } from "../../components/states.tsx";
import { ACTION_COLOURS, ACTIONS, formatCount, formatLength } from "../../look/words.ts";
import { useFilterLink } from "../../state/filters.ts";
import { useSpan } from "../../state/span.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";

/** The word of the platform's search for each action of the chart. */
const ACTION_VALUE = { blocked: "block", challenged: "challenge", logged: "log" } as const;

/** Events over time by action, with the alerts of the span on it. */
export function EventChart() {
  const { zones, only } = useZones();
  const span = useSpan();
  const trend = useTrend(zones, span);
  const alerts = useAlerts(
    {
      since: Math.floor(span.fromMs),
      until: Math.ceil(span.toMs),
      kind: ["spike", "new-rule", "group"],
      limit: 200,
      ...(only === null ? {} : { zone: only.id }),
    },
    "chart",
  );
  const filter = useFilterLink();
  const { data } = trend;
  const series = useMemo(() => (data === undefined ? [] : toSeries(data)), [data]);
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
  const about =
    data === undefined ? null : (
      <>
        per {formatLength(data.widthMs).replace(/^1 (?=\w)/, "")} · {formatLength(span.toMs - span.fromMs)} ·{" "}
        <Completeness of={data.completeness} />
      </>
    );
  return (
    <Panel title="Events by action" about={about} flush>
      <QueryView
        query={trend}
        rows={6}
        asking={`${formatLength(span.toMs - span.fromMs)} of ${zones.length} zones`}
      >
        {(found) => {
          const total = found.counts.total.reduce((sum, count) => sum + count, 0);
          return (
            <>
              {found.failed.length > 0 ? (
                <Partial>
                  {found.failed
                    .map(({ zone, problem }) => `${zoneTitle(zone)} is missing: ${problem.message}`)
                    .join(" ")}
                </Partial>
              ) : null}
              {total === 0 ? <Empty>No event in this span. Choose a longer span in the header.</Empty> : null}
              <TimeSeries
                timesMs={found.timesMs}
                widthMs={found.widthMs}
                series={series}
                incomplete={found.incomplete}
                markers={markers}
                height={190}
                label={`${formatCount(total)} events over ${formatLength(span.toMs - span.fromMs)}, by action; ${markers.length} alert marks`}
                onBrush={span.narrow}
                onWiden={span.widen}
                onPick={(id, kind) => {
                  const value = ACTION_VALUE[id as keyof typeof ACTION_VALUE];
                  if (value !== undefined) filter("action", value, kind);
                }}
              />
            </>
          );
        }}
      </QueryView>
    </Panel>
  );
}

function toSeries({ counts }: Trend) {
  const isShown = (name: (typeof ACTIONS)[number]) =>
    name !== "other" || counts.other.some((count) => count > 0);
  return ACTIONS.filter(isShown).map((name) => ({
    id: name,
    label: name,
    colour: ACTION_COLOURS[name],
    values: counts[name],
  }));
}
