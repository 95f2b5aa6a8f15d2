import { useMemo, useState } from "react";
import { useParams } from "wouter";
import {
  type AlertContext,
  type AlertDetail,
  useAlert,
  useAlertContext,
  useRuleSeries,
} from "#faces/console/api/queries.ts";
import { decodeUrl, type EventRow, readRecord, useEventRows } from "#faces/console/api/search.ts";
import { toDetectorChart } from "#faces/console/components/chart-lines.ts";
import { chartHeight, TimeSeries } from "#faces/console/components/charts.tsx";
import { Compared } from "#faces/console/components/compared.tsx";
import { ActionWord, AdviceText } from "#faces/console/components/facts.tsx";
import { Panel } from "#faces/console/components/panel.tsx";
import { FilterValue, PageEventsContext, Payload } from "#faces/console/components/payload.tsx";
import { Empty, ProblemBox, QueryView } from "#faces/console/components/states.tsx";
import { hasRule, toAlertEvents, toEventFilter } from "#faces/console/state/filters.ts";
import { useNow } from "#faces/console/state/now.tsx";
import { useZones, useZoneTitle } from "#faces/console/state/zones.ts";
import { formatClock, formatUtc } from "#faces/console/style/words.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import classes from "./alert/alert.module.css";
import { Attackers, MemberRules } from "./alert/attackers.tsx";
import { ExclusionPanel } from "./alert/exclusion.tsx";
import { Headline } from "./alert/headline.tsx";
import { Episodes, Risen, Silences, Timeline } from "./alert/timeline.tsx";
import { VerdictPanel } from "./alert/verdict.tsx";

/** The story of one alert, from top to bottom. */
export default function AlertPage() {
  const { id } = useParams<{ id: string }>();
  const alert = useAlert(id);
  return (
    <div className="lw-page">
      <QueryView query={alert} rows={8} asking={`alert ${id}`}>
        {(found) => <Story key={found.id} alert={found} id={id} />}
      </QueryView>
    </div>
  );
}

function Story({ alert, id }: { readonly alert: AlertDetail; readonly id: string }) {
  const context = useAlertContext(id);
  return (
    <PageEventsContext value={toAlertEvents(alert)}>
      <div className={classes["story"]}>
        <Headline alert={alert} context={context.data} />
        <VerdictPanel alert={alert} />
        <ExclusionPanel alert={alert} />
        <Attackers alert={alert} />
        <MemberRules alert={alert} />
        {/* The counts by rule have no row for the incidents and the changes of a zone. */}
        {hasRule(alert) ? <AlertCurve alert={alert} during={context.data?.during ?? null} /> : null}
        <Compared
          context={hasRule(alert) || alert.condition !== null ? context.data : undefined}
          evidence={alert.evidence}
          what="the alert"
        />
        <Samples alert={alert} />
        {context.error === null ? null : (
          <ProblemBox thrown={context.error} onRetry={() => void context.refetch()} />
        )}
        <Advice alert={alert} />
        <Timeline alert={alert} />
        {context.data === undefined ? null : (
          <div className="lw-columns">
            <Risen risen={context.data.risen} />
            <Episodes episodes={context.data.episodes} />
            <Silences silences={context.data.silences} />
          </div>
        )}
      </div>
    </PageEventsContext>
  );
}

/** The text may name sources that have nothing to do with the alert, because the platform answers about a rule. */
function Advice({ alert: { advice, ruleId, zoneId } }: { readonly alert: AlertDetail }) {
  const zoneName = useZoneTitle();
  if (advice === null) return null;
  const about =
    ruleId === null ? "" : `about rule ${ruleId === "" ? "(none)" : ruleId} in all of ${zoneName(zoneId)}; `;
  const { state, text, reason } = advice;
  return (
    <Panel title="Advice of the platform's AI" about={`${about}not verified, not applied`}>
      {state === "pending" ? (
        <span className="lw-dim">Asked, not received yet.</span>
      ) : (
        <AdviceText text={text ?? reason ?? "The platform gave no advice."} />
      )}
    </Panel>
  );
}

const SHOWN = 5;
const BEFORE_MS = 5 * MINUTE_MS;
/** Short: the newest rows are read first, and rows from after a brief attack would show the usual traffic. */
const AFTER_MS = MINUTE_MS;

/** A few requests of the alert's first minutes, from its most frequent addresses, with the matched text marked. */
function Samples({ alert }: { readonly alert: AlertDetail }) {
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
function AlertCurve({ alert, during }: Props) {
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
