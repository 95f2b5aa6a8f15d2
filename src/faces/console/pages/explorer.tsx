/** The page that explores events: their histogram and their most frequent values. */
import { useEffect, useMemo, useRef, useState } from "react";
import { formatShare, many } from "#lib/format.ts";
import { FIELD_NAMES, toFieldName } from "#model/fields.ts";
import { useCompleteness } from "../api/of-zones.ts";
import { type EventRow, type EventScope, useEventCount, useHistogram, useTopList } from "../api/search.ts";
import { Choices, SubtleButton } from "../components/buttons.tsx";
import { ActionChart, chartHeight, Sparkline, useAgainst } from "../components/charts.tsx";
import { ActionWord } from "../components/facts.tsx";
import { Panel, QueryPanel } from "../components/panel.tsx";
import { FilterValue } from "../components/payload.tsx";
import { Completeness, Empty, FailedZones, QueryView } from "../components/states.tsx";
import { readFilters, toFilterParams, wordFilter } from "../state/filters.ts";
import { useSpan } from "../state/span.ts";
import { useUrlState } from "../state/url-state.ts";
import { useZones } from "../state/zones.ts";
import { FIELD_WORDS, formatCount, formatLength, formatMoment, wordField } from "../style/words.ts";
import { EventDrawer } from "./explorer/event-drawer.tsx";
import { EventTable } from "./explorer/event-table.tsx";
import classes from "./explorer/explorer.module.css";
import { FilterBar } from "./explorer/filter-bar.tsx";

/** Page with one set of filters over a histogram, top lists and the events themselves. */
export default function ExplorerPage() {
  const { scope, newer, showNewer } = useExplorerScope();
  const [opened, open] = useState<EventRow | null>(null);
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Explorer</h1>
      <FilterBar scope={scope} />
      <HistogramPanel scope={scope} />
      <div className={classes["columns"]}>
        <TopValues scope={scope} />
        <EventTable scope={scope} newer={newer} onNewer={showNewer} opened={opened} onOpen={open} />
      </div>
      <EventDrawer event={opened} scope={scope} onClose={() => open(null)} />
    </div>
  );
}

/**
 * The scope of the page. A span that ends now ends where it was last moved to, so that rows do not move under the reader.
 * `newer` is the time after that, in which new events may be; null for a span with fixed ends.
 */
function useExplorerScope() {
  const { params } = useUrlState();
  const span = useSpan();
  const { zones } = useZones();
  const read = readFilters(params);
  const filterKey = JSON.stringify([read.filters, read.query]);
  const { filters, query } = useMemo(() => read, [filterKey]);
  const zoneKey = zones.map(({ id }) => id).join();
  const shown = useMemo(() => zones, [zoneKey]);
  const [pinned, pin] = useState(span.toMs);
  const isNew = useRef("");
  const asked = `${filterKey} ${zoneKey} ${span.name}`;
  useEffect(() => {
    if (isNew.current !== asked) pin(span.toMs);
    isNew.current = asked;
  }, [asked, span.toMs]);
  const isMoving = span.name !== null;
  const toMs = isMoving ? Math.min(pinned, span.toMs) : span.toMs;
  const fromMs = isMoving ? toMs - (span.toMs - span.fromMs) : span.fromMs;
  const scope = useMemo<EventScope>(
    () => ({ zones: shown, fromMs, toMs, query, filters }),
    [shown, fromMs, toMs, query, filters],
  );
  return {
    scope,
    newer: isMoving && span.toMs > toMs ? { ...scope, fromMs: toMs, toMs: span.toMs } : null,
    showNewer: () => pin(span.toMs),
  };
}

const PLOT_PX = 120;

/** The events that match over the span. Always there: the span is narrowed on it. */
function HistogramPanel({ scope }: { readonly scope: EventScope }) {
  const { fromMs, toMs, zones } = scope;
  const histogram = useHistogram(scope);
  const { words, menu, ...other } = useAgainst(scope);
  const before = useHistogram({ ...scope, ...other }).data;
  const against = useMemo(
    () => (before === undefined || words === null ? null : { words, ...before }),
    [before, words],
  );
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
      actions={menu}
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
            against={against}
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
    <Empty action={<SubtleButton word="Remove it" onClick={() => change(toFilterParams(without.filters))} />}>
      No event matches.{" "}
      {count.data === undefined ? "" : `${formatCount(count.data)} do without the filter "${name}".`}
    </Empty>
  );
}

const SHOWN = 25;

/** The most frequent values of one field, each to filter for and to filter out. */
function TopValues({ scope }: { readonly scope: EventScope }) {
  const { params, change } = useUrlState();
  const field = toFieldName(params.get("by")) ?? "address";
  const top = useTopList(scope, field);
  const total = useHistogram(scope).data?.total ?? 0;
  return (
    <Panel title="Group by" about={top.data === undefined ? null : many(top.data.values, "value")} flush>
      <div className="lw-hint">
        <Choices
          label="Field"
          names={FIELD_NAMES}
          words={FIELD_WORDS}
          chosen={[field]}
          onToggle={(name) => change({ by: name === "address" ? null : name }, { replace: true })}
        />
      </div>
      <QueryView query={top} rows={10} asking={`the values of ${wordField(field)}`}>
        {({ groups, values }) => {
          const shown = groups.slice(0, SHOWN);
          const rest = total - shown.reduce((sum, { count }) => sum + count, 0);
          if (shown.length === 0) return <Empty>No event matches.</Empty>;
          return (
            <>
              <ol className={`lw-list ${classes["top"]}`}>
                {shown.map(({ value, count, sparkline }) => (
                  <li
                    key={value}
                    className={classes["value"]}
                    style={{ "--share": `${total > 0 ? (100 * count) / total : 0}%` } as React.CSSProperties}
                  >
                    <FilterValue field={field} value={value}>
                      {field === "action" ? <ActionWord action={value} /> : undefined}
                    </FilterValue>
                    <b>{formatCount(count)}</b>
                    <span className="lw-dim lw-number">{total === 0 ? "" : formatShare(count / total)}</span>
                    <Sparkline values={sparkline} width={72} label={`${value.slice(0, 80)} over the span`} />
                  </li>
                ))}
              </ol>
              {rest > 0 && values > shown.length ? (
                <div className="lw-hint">
                  all others: {formatCount(rest)} events ({formatShare(rest / total)}),{" "}
                  {formatCount(values - shown.length)} values
                </div>
              ) : null}
            </>
          );
        }}
      </QueryView>
    </Panel>
  );
}
