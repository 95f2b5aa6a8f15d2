import { many } from "#lib/format.ts";
import { useCompleteness } from "../../api/completeness.ts";
import { type EventScope, useEventCount, useHistogram } from "../../api/search.ts";
import { ActionChart } from "../../components/action-chart.tsx";
import { Completeness } from "../../components/completeness.tsx";
import { chartHeight } from "../../components/lazy-time-series.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { QuietButton } from "../../components/quiet-button.tsx";
import { Empty, FailedZones } from "../../components/states.tsx";
import { formatCount, formatLength, formatMoment } from "../../look/words.ts";
import { toFilterParams, wordFilter } from "../../state/filters.ts";
import { useSpan } from "../../state/span.ts";
import { useUrlState } from "../../state/url-state.ts";

const PLOT_PX = 120;

/** The events that match over the span. Always there: the span is narrowed on it. */
export function HistogramPanel({ scope }: { readonly scope: EventScope }) {
  const { fromMs, toMs, zones } = scope;
  const histogram = useHistogram(scope);
  const known = useCompleteness(zones, scope).data;
  const { name } = useSpan();
  const { data } = histogram;
  const length = formatLength(toMs - fromMs);
  return (
    <QueryPanel
      title={data === undefined ? "Events" : `${formatCount(data.total)} events`}
      about={
        <>
          {name === null ? `${formatMoment(fromMs)} to ${formatMoment(toMs)}` : `last ${length}`}
          <Completeness of={known?.completeness} zones={zones.length} />
        </>
      }
      query={histogram}
      height={chartHeight(PLOT_PX)}
      asking={`${length} of ${many(zones.length, "zone")}`}
    >
      {({ failed, total, ...counted }) => (
        <>
          <FailedZones of={failed} say="The counts are of the other zones only." />
          {total === 0 ? <NoEvents scope={scope} /> : null}
          <ActionChart
            {...counted}
            always={NONE}
            known={known}
            height={PLOT_PX}
            label={`${formatCount(total)} events over ${length}, by action`}
          />
        </>
      )}
    </QueryPanel>
  );
}

const NONE: readonly never[] = [];

/** Says which filter to remove, and how many events there would be. */
function NoEvents({ scope }: { readonly scope: EventScope }) {
  const { change } = useUrlState();
  const last = scope.filters.at(-1);
  const without = { ...scope, filters: scope.filters.slice(0, -1) };
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
    <Empty action={<QuietButton word="Remove it" onClick={() => change(toFilterParams(without.filters))} />}>
      No event matches.{" "}
      {count.data === undefined ? "" : `${formatCount(count.data)} do without the filter "${name}".`}
    </Empty>
  );
}
