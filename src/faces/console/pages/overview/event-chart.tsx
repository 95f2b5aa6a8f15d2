import { useMemo } from "react";
import { ACTION_CLASSES, SPIKE_KINDS } from "#model/kinds.ts";
import { useCompleteness } from "../../api/of-zones.ts";
import { type Overview, useAlerts, useOverview } from "../../api/queries.ts";
import { toMarkers } from "../../components/chart-lines.ts";
import { ActionChart, chartHeight } from "../../components/charts.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { Completeness, Empty, FailedZones } from "../../components/states.tsx";
import { useSpan } from "../../state/span.ts";
import { useZones } from "../../state/zones.ts";
import { formatCount, formatLength } from "../../style/words.ts";

const ALWAYS = ACTION_CLASSES.filter((name) => name !== "other");

const PLOT_PX = 190;

/** Events over time by action, with the alerts of the span on it. */
export function EventChart() {
  const { zones, only, isShown } = useZones();
  const span = useSpan();
  const { length } = span;
  const overview = useOverview();
  const known = useCompleteness(zones, span).data;
  const alerts = useAlerts({
    since: Math.floor(span.fromMs),
    until: Math.ceil(span.toMs),
    kind: SPIKE_KINDS,
    limit: 200,
    zone: only?.id ?? null,
  }).data?.items;
  const { data } = overview;
  const counted = useMemo(() => (data === undefined ? null : sumUp(data)), [data]);
  const markers = useMemo(
    () =>
      toMarkers(
        (alerts ?? [])
          // An incident's rules would be many marks of one attack.
          .filter(({ zoneId, incidentId }) => zoneId !== null && isShown(zoneId) && incidentId === null)
          .map(({ firedAt, resolvedAt }) => [firedAt, resolvedAt]),
      ),
    [alerts, zones],
  );
  const about =
    counted === null ? null : (
      <>
        per {formatLength(counted.widthMs).replace(/^1 (?=\w)/, "")} · {length}
        <Completeness of={known?.completeness} zones={zones.length} />
      </>
    );
  return (
    <QueryPanel
      title="Events by action"
      about={about}
      query={overview}
      height={chartHeight(PLOT_PX)}
      asking={`${length} of ${zones.length} zones`}
    >
      {() =>
        counted === null ? null : (
          <>
            <FailedZones of={known?.failed} say="Coverage is missing." />
            {counted.total === 0 ? (
              <Empty>No event in this span. Choose a longer span in the header.</Empty>
            ) : null}
            <ActionChart
              {...counted}
              always={ALWAYS}
              known={known}
              markers={markers}
              height={PLOT_PX}
              label={`${formatCount(counted.total)} events over ${length}, by action; ${markers.length} alert marks`}
            />
          </>
        )
      }
    </QueryPanel>
  );
}

/** Adds the zones up. Steps without events are not in the answer, and are zero. */
function sumUp({ zones, from, to, stepSeconds }: Overview) {
  const widthMs = stepSeconds * 1_000;
  const firstMs = Math.floor(Date.parse(from) / widthMs) * widthMs;
  const steps = Math.max(0, Math.ceil((Date.parse(to) - firstMs) / widthMs));
  const zeros = () => Array.from({ length: steps }, () => 0);
  const counts = { blocked: zeros(), challenged: zeros(), logged: zeros(), other: zeros() };
  let total = 0;
  for (const { startsAtMs, ...point } of zones.flatMap(({ points }) => points)) {
    const step = Math.round((startsAtMs - firstMs) / widthMs);
    if (step < 0 || step >= steps) continue;
    for (const name of ACTION_CLASSES) {
      counts[name][step] = (counts[name][step] ?? 0) + point[name];
      total += point[name];
    }
  }
  return { widthMs, counts, timesMs: zeros().map((_, step) => firstMs + step * widthMs), total };
}
