/** The curve of an alert and samples of its events. */
import { useMemo, useState } from "react";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type AlertContext, type AlertDetail, useRuleSeries } from "../../api/queries.ts";
import { decodeUrl, type EventRow, readRecord, useEventRows } from "../../api/search.ts";
import { toDetectorChart } from "../../components/chart-lines.ts";
import { chartHeight, TimeSeries } from "../../components/charts.tsx";
import { ActionWord } from "../../components/facts.tsx";
import { Panel } from "../../components/panel.tsx";
import { FilterValue, Payload } from "../../components/payload.tsx";
import { Empty, QueryView } from "../../components/states.tsx";
import { toEventFilter } from "../../state/filters.ts";
import { useNow } from "../../state/now.tsx";
import { useZones } from "../../state/zones.ts";
import { formatClock, formatUtc } from "../../style/words.ts";
import classes from "./alert.module.css";

const SHOWN = 5;
const BEFORE_MS = 5 * MINUTE_MS;
/** Short: the newest rows are read first, and rows from after a brief attack would show the usual traffic. */
const AFTER_MS = MINUTE_MS;

/** A few requests of the alert's first minutes, from its most frequent addresses, with the matched text marked. */
export function Samples({ alert }: { readonly alert: AlertDetail }) {
  const { zoneId, firedAt } = alert;
  const { field, value } = toEventFilter(alert) ?? { field: "rule" as const, value: null };
  const { all } = useZones();
  const [nowMs] = useState(Date.now);
  const firedMs = Date.parse(firedAt);
  const scope = useMemo(
    () => ({
      zones: all.filter(({ id }) => id === zoneId),
      fromMs: firedMs - BEFORE_MS,
      toMs: Math.min(firedMs + AFTER_MS, nowMs),
      query: "",
      filters: [{ kind: "is" as const, field, value: value ?? "" }],
    }),
    [all, zoneId, field, value, firedMs, nowMs],
  );
  const found = useEventRows(scope);
  if (zoneId === null || value === null) return null;
  return (
    <Panel title="Sample requests" about="of the first minutes, most frequent addresses first" flush>
      <QueryView query={found} rows={4} asking="requests of the alert">
        {({ pages }) => {
          const rows = pickOfTopAddresses(pages[0]?.rows ?? []);
          if (rows.length === 0) return <Empty>No request of the alert's first minutes is kept.</Empty>;
          return (
            <ul className="lw-rows">
              {rows.map((row) => (
                <Sample key={row.logId} row={row} />
              ))}
            </ul>
          );
        }}
      </QueryView>
    </Panel>
  );
}

/** One request of each address, the most frequent address first; then further requests. */
function pickOfTopAddresses(rows: readonly EventRow[]): EventRow[] {
  const byAddress = Map.groupBy(rows, ({ fields }) => fields.address);
  const sorted = [...byAddress.values()].sort((one, other) => other.length - one.length);
  return [...new Set([...sorted.flatMap((of) => of.slice(0, 1)), ...rows])].slice(0, SHOWN);
}

function Sample({ row: { timestamp, fields, log } }: { readonly row: EventRow }) {
  const { matched, matchedIn, body } = readRecord(log);
  return (
    <li className={classes["sample"]}>
      <div className={classes["line"]}>
        <time title={formatUtc(timestamp)}>{formatClock(timestamp, { millis: true })}</time>
        <ActionWord action={fields.action} />
        <FilterValue field="address" value={fields.address} />
        <FilterValue field="country" value={fields.country} />
        {fields.method === "" ? null : <FilterValue field="method" value={fields.method} />}
        <FilterValue field="host" value={fields.host} />
        <FilterValue field="path" value={fields.path} />
      </div>
      <Payload text={decodeUrl(fields.url)} mark={matched} />
      {body === "" ? null : (
        <div>
          <span className="lw-dim">body </span>
          <Payload text={body} mark={matched} />
        </div>
      )}
      {matched === "" ? null : (
        <div className="lw-note">
          matched {matchedIn === "" ? "" : <Payload text={matchedIn} />}:{" "}
          <Payload text={matched} mark={matched} />
        </div>
      )}
    </li>
  );
}

const PLOT_PX = 170;

const CURVE_BEFORE_MS = HOUR_MS;
const LONGEST_MS = 12 * HOUR_MS;

interface Props extends Pick<AlertContext, "during"> {
  readonly alert: AlertDetail;
}

/** The counts of the alert's rule around the alert, with what the detector expected. */
export function AlertCurve({ alert, during }: Props) {
  const { zoneId, ruleId, firedAt, resolvedAt, id } = alert;
  const nowMs = useNow();
  const firedMs = Date.parse(firedAt);
  const endMs = resolvedAt === null ? nowMs : Math.min(Date.parse(resolvedAt) + CURVE_BEFORE_MS / 2, nowMs);
  const from = firedMs - CURVE_BEFORE_MS;
  const to = Math.floor(Math.min(endMs, from + LONGEST_MS) / MINUTE_MS) * MINUTE_MS;
  const series = useRuleSeries({ zone: zoneId, rule: ruleId, width: "minute", from, to });
  if (zoneId === null || ruleId === null) return null;
  return (
    <Panel title="Events per minute" about="from one hour before the alert" flush>
      <QueryView query={series} height={chartHeight(PLOT_PX)} asking="the counts of the rule">
        {({ points }) => (
          <TimeSeries
            {...toDetectorChart(points, during)}
            widthMs={MINUTE_MS}
            {...(zoneId === null ? {} : { zone: zoneId })}
            markers={[
              { atMs: firedMs, kind: "opened" },
              ...(resolvedAt === null ? [] : [{ atMs: Date.parse(resolvedAt), kind: "resolved" as const }]),
            ]}
            height={PLOT_PX}
            label={`Events per minute of rule ${ruleId} around alert ${id}, with the expected count and the threshold`}
          />
        )}
      </QueryView>
    </Panel>
  );
}
