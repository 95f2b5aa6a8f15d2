import { Button } from "@mantine/core";
import { useMemo } from "react";
import { ACTION_CLASSES } from "#model/kinds.ts";
import { markIncomplete, useCompleteness } from "../../api/completeness.ts";
import { type EventScope, useEventCount, useHistogram, withoutFilter } from "../../api/search.ts";
import { Completeness } from "../../components/completeness.tsx";
import { chartHeight, TimeSeries } from "../../components/lazy-time-series.tsx";
import { Panel } from "../../components/panel.tsx";
import { Empty, Partial, QueryView } from "../../components/states.tsx";
import { ACTION_COLOURS, formatCount, formatLength, formatMoment } from "../../look/words.ts";
import { filterAction, toFilterParams, wordFilter } from "../../state/filters.ts";
import { useSpan } from "../../state/span.ts";
import { useUrlState } from "../../state/url-state.ts";
import { zoneTitle } from "../../state/zones.ts";

const PLOT_PX = 120;

/** The events that match over the span. Always there: the span is narrowed on it. */
export function HistogramPanel({ scope }: { readonly scope: EventScope }) {
  const histogram = useHistogram(scope);
  const known = useCompleteness(scope.zones, scope).data;
  const span = useSpan();
  const { data } = histogram;
  const series = useMemo(
    () =>
      data === undefined
        ? []
        : ACTION_CLASSES.filter((name) => data.counts[name].some((count) => count > 0)).map((name) => ({
            id: name,
            label: name,
            colour: ACTION_COLOURS[name],
            values: data.counts[name],
          })),
    [data],
  );
  const length = formatLength(scope.toMs - scope.fromMs);
  const incomplete = useMemo(
    () => (data === undefined ? [] : markIncomplete(data.timesMs, data.widthMs, known)),
    [data, known],
  );
  const about = (
    <>
      {span.name === null ? `${formatMoment(scope.fromMs)} to ${formatMoment(scope.toMs)}` : `last ${length}`}
      {known === undefined ? null : (
        <>
          {" "}
          · <Completeness of={known.completeness} zones={scope.zones.length} />
        </>
      )}
    </>
  );
  const zoneCount = scope.zones.length === 1 ? "1 zone" : `${scope.zones.length} zones`;
  return (
    <Panel title={data === undefined ? "Events" : `${formatCount(data.total)} events`} about={about} flush>
      <QueryView query={histogram} height={chartHeight(PLOT_PX)} asking={`${length} of ${zoneCount}`}>
        {(found) => (
          <>
            {found.failed.length > 0 ? (
              <Partial>
                The counts are of the other zones only.{" "}
                {found.failed.map(({ zone, problem }) => `${zoneTitle(zone)}: ${problem.message}`).join(" ")}
              </Partial>
            ) : null}
            {found.total === 0 ? <NoEvents scope={scope} /> : null}
            <TimeSeries
              timesMs={found.timesMs}
              widthMs={found.widthMs}
              series={series}
              height={PLOT_PX}
              label={`${formatCount(found.total)} events over ${length}, by action`}
              onBrush={span.narrow}
              onWiden={span.widen}
              onPick={filterAction}
              incomplete={incomplete}
            />
          </>
        )}
      </QueryView>
    </Panel>
  );
}

/** Says which filter to remove, and how many events there would be. */
function NoEvents({ scope }: { readonly scope: EventScope }) {
  const { change } = useUrlState();
  const last = scope.filters.at(-1);
  const without = last === undefined ? scope : withoutFilter(scope, last);
  const count = useEventCount(without, last !== undefined);
  if (last === undefined)
    return (
      <Empty>
        {scope.query === ""
          ? "No event in this span. Choose a longer span in the header."
          : "No event has this text in this span."}
      </Empty>
    );
  const name = wordFilter({ ...last, value: last.value.slice(0, 80) });
  return (
    <Empty
      action={
        <Button variant="default" onClick={() => change(toFilterParams(without.filters))}>
          Remove it
        </Button>
      }
    >
      No event matches.{" "}
      {count.data === undefined ? "" : `${formatCount(count.data)} do without the filter "${name}".`}
    </Empty>
  );
}
