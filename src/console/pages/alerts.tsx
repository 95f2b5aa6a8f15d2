import { Button, SegmentedControl } from "@mantine/core";
import { Link, useLocation } from "wouter";
import { formatDuration } from "../../lib/format.ts";
import type { AlertKind } from "../../model/kinds.ts";
import { type Alert, type AlertQuery, useAlertPages } from "../api/alerts.ts";
import { Ago, Moment } from "../components/ago.tsx";
import { OlderEntries } from "../components/older-entries.tsx";
import { Panel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { Severity } from "../components/severity.tsx";
import { Empty, QueryView } from "../components/states.tsx";
import { formatLength } from "../look/words.ts";
import { useRowKeys } from "../state/row-keys.ts";
import { useSpan } from "../state/span.ts";
import { usePageLink, useUrlState } from "../state/url-state.ts";
import { useZones, useZoneTitle } from "../state/zones.ts";
import classes from "./alerts/alerts.module.css";

const STATES = {
  open: ["firing", "acknowledged"],
  firing: ["firing"],
  resolved: ["resolved"],
  all: null,
} as const;
type StateName = keyof typeof STATES;
const SEVERITIES = ["critical", "error", "warning", "info"];
const KINDS: Readonly<Record<AlertKind, string>> = {
  spike: "spike",
  "new-rule": "new rule",
  sources: "sources",
  group: "group",
  self: "about Longwatch",
};

/** Every alert. Those that are open are shown whatever the span; the others by the time at which they fired. */
export default function AlertsPage() {
  const { params, change } = useUrlState();
  const { chosen, zones, only } = useZones();
  const span = useSpan();
  const named = params.get("state") ?? "open";
  const state: StateName = named in STATES ? (named as StateName) : "open";
  const severity = (params.get("severity") ?? "").split(",").filter((one) => SEVERITIES.includes(one));
  const kind = (params.get("kind") ?? "").split(",").filter((one) => one in KINDS);
  const rule = params.get("rule");
  const states = STATES[state];
  const isTimed = state === "resolved" || state === "all";
  const query: AlertQuery = {
    limit: 100,
    ...(states === null ? {} : { state: states }),
    ...(severity.length === 0 ? {} : { severity }),
    ...(kind.length === 0 ? {} : { kind }),
    ...(rule === null ? {} : { rule }),
    ...(only === null || chosen === "" ? {} : { zone: only.id }),
    ...(isTimed ? { since: Math.floor(span.fromMs / 60_000) * 60_000 } : {}),
    ...(isTimed && span.name === null ? { until: Math.ceil(span.toMs) } : {}),
  };
  const found = useAlertPages(query);
  const ids = new Set(zones.map(({ id }) => id));
  const alerts = (found.data?.pages.flatMap(({ items }) => items) ?? []).filter(
    ({ zoneId }) => chosen === "" || (zoneId !== null && ids.has(zoneId)),
  );
  const toggle = (name: string, all: readonly string[], value: string) => {
    const next = all.includes(value) ? all.filter((one) => one !== value) : [...all, value];
    change({ [name]: next.length === 0 ? null : next.join(",") });
  };
  const length = formatLength(span.toMs - span.fromMs);
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Alerts</h1>
      <div className="lw-bar">
        <SegmentedControl
          size="xs"
          aria-label="State"
          data={Object.keys(STATES)}
          value={state}
          onChange={(value) => change({ state: value === "open" ? null : value })}
        />
        <Choices
          label="Severity"
          names={SEVERITIES}
          chosen={severity}
          onToggle={(one) => toggle("severity", severity, one)}
        />
        <Choices
          label="Kind"
          names={Object.keys(KINDS)}
          words={KINDS}
          chosen={kind}
          onToggle={(one) => toggle("kind", kind, one)}
        />
        {rule === null ? null : (
          <Button variant="light" onClick={() => change({ rule: null })}>
            rule {rule === "" ? "(none)" : rule.slice(0, 60)} ×
          </Button>
        )}
      </div>
      <Panel
        title="Alerts"
        about={
          isTimed
            ? `that fired in ${span.name === null ? "the chosen span" : `the last ${length}`}, newest first`
            : `${state === "open" ? "firing or acknowledged" : "firing, and not acknowledged"}, newest first, whenever they fired`
        }
        flush
      >
        <QueryView query={found} rows={8} asking="alerts">
          {() =>
            alerts.length === 0 ? (
              <Nothing
                state={state}
                isNarrow={severity.length + kind.length > 0 || rule !== null || chosen !== ""}
                length={length}
              />
            ) : (
              <AlertTable alerts={alerts} />
            )
          }
        </QueryView>
        <OlderEntries query={found} what="alerts" />
      </Panel>
    </div>
  );
}

interface ChoicesProps {
  readonly label: string;
  readonly names: readonly string[];
  readonly words?: Readonly<Record<string, string>>;
  readonly chosen: readonly string[];
  readonly onToggle: (name: string) => void;
}

function Choices({ label, names, words = {}, chosen, onToggle }: ChoicesProps) {
  return (
    <div className={classes["choices"]} role="group" aria-label={label}>
      {names.map((name) => (
        <button
          key={name}
          type="button"
          className={classes["choice"]}
          aria-pressed={chosen.includes(name)}
          onClick={() => onToggle(name)}
        >
          {words[name] ?? name}
        </button>
      ))}
    </div>
  );
}

function Nothing({
  state,
  isNarrow,
  length,
}: {
  readonly state: StateName;
  readonly isNarrow: boolean;
  readonly length: string;
}) {
  const { change } = useUrlState();
  const what =
    state === "all"
      ? `No alert fired in the last ${length}`
      : state === "resolved"
        ? `No alert of the last ${length} is resolved`
        : `No alert is ${state}`;
  return (
    <Empty
      action={
        isNarrow ? (
          <Button
            variant="default"
            onClick={() => change({ severity: null, kind: null, rule: null, zone: null })}
          >
            Remove the filters
          </Button>
        ) : state === "open" || state === "firing" ? (
          <Button variant="default" onClick={() => change({ state: "all" })}>
            Show earlier alerts
          </Button>
        ) : null
      }
    >
      {what}
      {isNarrow ? " with these filters" : ""}.
    </Empty>
  );
}

function AlertTable({ alerts }: { readonly alerts: readonly Alert[] }) {
  const link = usePageLink();
  const [, navigate] = useLocation();
  const [chosen] = useRowKeys({
    count: alerts.length,
    onOpen: (index) => navigate(link(`/alerts/${alerts[index]?.id}`)),
    onMove: (index) => document.querySelector(`[data-row="${index}"]`)?.scrollIntoView({ block: "nearest" }),
  });
  return (
    <ul className={classes["list"]}>
      {alerts.map((alert, index) => (
        <Row key={alert.id} alert={alert} index={index} isChosen={index === chosen} />
      ))}
    </ul>
  );
}

function Row({
  alert,
  index,
  isChosen,
}: {
  readonly alert: Alert;
  readonly index: number;
  readonly isChosen: boolean;
}) {
  const {
    id,
    severity,
    state,
    zoneId,
    ruleId,
    ruleTitle,
    headline,
    kind,
    firedAt,
    resolvedAt,
    acknowledgedBy,
  } = alert;
  const link = usePageLink();
  const [, navigate] = useLocation();
  const zoneName = useZoneTitle();
  const path = link(`/alerts/${id}`);
  return (
    <li
      className={classes["row"]}
      data-row={index}
      data-state={state}
      data-chosen={isChosen || undefined}
      onClick={() => navigate(path)}
    >
      <Severity severity={severity} state={state} />
      <div className={classes["what"]}>
        <Link href={path} className={classes["headline"] ?? ""} onClick={(event) => event.stopPropagation()}>
          <Payload prose text={headline ?? `alert ${id}`} />
        </Link>
        <div className={classes["where"]}>
          {zoneName(zoneId)}
          {ruleId === null ? "" : ` · rule ${ruleId === "" ? "(none)" : ruleId}`} {ruleTitle ?? ""} ·{" "}
          {KINDS[kind as AlertKind] ?? kind} · alert {id}
          {acknowledgedBy === null ? null : (
            <>
              {" "}
              · taken by <Payload prose text={acknowledgedBy} />
            </>
          )}
        </div>
      </div>
      <div className={classes["when"]}>
        <Ago at={firedAt} />
        <div className={classes["where"]}>
          {resolvedAt === null ? (
            <Moment at={firedAt} />
          ) : (
            `lasted ${formatDuration(Date.parse(resolvedAt) - Date.parse(firedAt))}`
          )}
        </div>
      </div>
    </li>
  );
}
