import { Button, Checkbox, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { formatDuration } from "#lib/format.ts";
import { ALERT_KINDS, ALERT_SORTS, type AlertKind, SEVERITIES, UNRESOLVED_STATES } from "#model/kinds.ts";
import { type Alert, type AlertQuery, useAlertPages } from "../api/alerts.ts";
import { useMay } from "../api/session.ts";
import { Ago, Moment } from "../components/ago.tsx";
import { OlderEntries } from "../components/older-entries.tsx";
import { Panel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { Severity } from "../components/severity.tsx";
import { SilencedBy } from "../components/silenced-by.tsx";
import { Empty, QueryView } from "../components/states.tsx";
import { formatLength } from "../look/words.ts";
import { useRowKeys } from "../state/row-keys.ts";
import { useSpan } from "../state/span.ts";
import { usePageLink, useUrlState } from "../state/url-state.ts";
import { useZones, useZoneTitle } from "../state/zones.ts";
import { hasRule } from "./alert/event-filter.ts";
import classes from "./alerts/alerts.module.css";
import { ManyActs } from "./alerts/many-acts.tsx";

const STATES = {
  open: UNRESOLVED_STATES,
  firing: ["firing"],
  resolved: ["resolved"],
  all: null,
} as const;
type StateName = keyof typeof STATES;
const KIND_WORDS: Readonly<Record<AlertKind, string>> = {
  spike: "spike",
  "new-rule": "new rule",
  sources: "sources",
  "action-change": "changed action",
  "silent-rule": "silent rule",
  group: "group",
  self: "about Longwatch",
};

/** Every alert. Those that are open are shown whatever the span; the others by the time at which they fired. */
export default function AlertsPage() {
  const { params, change } = useUrlState();
  const { chosen, zones, only } = useZones();
  const span = useSpan();
  const named = params.get("state") ?? "open";
  const state: StateName = Object.hasOwn(STATES, named) ? (named as StateName) : "open";
  const severity = (params.get("severity") ?? "")
    .split(",")
    .filter((one) => SEVERITIES.some((known) => known === one));
  const kind = (params.get("kind") ?? "")
    .split(",")
    .filter((one) => ALERT_KINDS.some((known) => known === one));
  const rule = params.get("rule");
  const states = STATES[state];
  const isTimed = state === "resolved" || state === "all";
  const sort = params.get("sort") === "newest" ? "newest" : "worst";
  const query: AlertQuery = {
    limit: 100,
    sort,
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
          names={SEVERITIES.toReversed()}
          chosen={severity}
          onToggle={(one) => toggle("severity", severity, one)}
        />
        <Choices
          label="Kind"
          names={ALERT_KINDS}
          words={KIND_WORDS}
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
        about={`${
          isTimed
            ? `that fired in ${span.name === null ? "the chosen span" : `the last ${length}`}`
            : `${state === "open" ? "firing or acknowledged" : "firing, and not acknowledged"}, whenever they fired`
        }, ${sort === "worst" ? "firing first, the worst first" : "newest first"}`}
        actions={
          <SegmentedControl
            size="xs"
            aria-label="Order"
            data={[...ALERT_SORTS]}
            value={sort}
            onChange={(value) => change({ sort: value === "worst" ? null : value })}
          />
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
  const mayAct = useMay("act");
  const [marked, mark] = useState<ReadonlySet<number>>(new Set());
  const open = alerts.filter(({ state }) => state !== "resolved");
  // An alert that has left the list is not acted on.
  const selected = open.filter(({ id }) => marked.has(id));
  const [chosen] = useRowKeys({
    count: alerts.length,
    onOpen: (index) => navigate(link(`/alerts/${alerts[index]?.id}`)),
    onMove: (index) => document.querySelector(`[data-row="${index}"]`)?.scrollIntoView({ block: "nearest" }),
  });
  const toggle = (id: number) =>
    mark(new Set(marked.has(id) ? [...marked].filter((one) => one !== id) : [...marked, id]));
  return (
    <>
      {mayAct && open.length > 0 ? (
        <ManyActs
          selected={selected}
          shown={open}
          onSelect={(some) => mark(new Set(some.map(({ id }) => id)))}
        />
      ) : null}
      <ul className={classes["list"]}>
        {alerts.map((alert, index) => (
          <Row
            key={alert.id}
            alert={alert}
            index={index}
            isChosen={index === chosen}
            isSelected={marked.has(alert.id)}
            onSelect={mayAct && alert.state !== "resolved" ? () => toggle(alert.id) : null}
          />
        ))}
      </ul>
    </>
  );
}

interface RowProps {
  readonly alert: Alert;
  readonly index: number;
  readonly isChosen: boolean;
  readonly isSelected: boolean;
  /** Null if nothing can be done with the alert. */
  readonly onSelect: (() => void) | null;
}

function Row({ alert, index, isChosen, isSelected, onSelect }: RowProps) {
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
    quietSince,
    acknowledgedBy,
    silence,
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
      data-silenced={silence !== null || undefined}
      data-chosen={isChosen || undefined}
      onClick={() => navigate(path)}
    >
      <div className={classes["pick"]} onClick={(event) => event.stopPropagation()}>
        {onSelect === null ? null : (
          <Checkbox size="xs" aria-label={`Select alert ${id}`} checked={isSelected} onChange={onSelect} />
        )}
      </div>
      <Severity severity={severity} state={state} />
      <div className={classes["what"]}>
        <Link href={path} className={classes["headline"] ?? ""} onClick={(event) => event.stopPropagation()}>
          <Payload prose text={headline ?? `alert ${id}`} />
        </Link>
        <div className={classes["where"]}>
          {zoneName(zoneId)}
          {ruleId === null || !hasRule({ kind }) ? "" : ` · rule ${ruleId === "" ? "(none)" : ruleId}`}{" "}
          {ruleTitle ?? ""} · {KIND_WORDS[kind as AlertKind] ?? kind} · alert {id}
          {quietSince === null ? null : (
            <>
              {" "}
              · quiet now, last active <Ago at={quietSince} />
            </>
          )}
          {acknowledgedBy === null ? null : (
            <>
              {" "}
              · taken by <Payload prose text={acknowledgedBy} />
            </>
          )}
        </div>
        {silence === null ? null : (
          <div className={classes["silenced"]}>
            <SilencedBy silence={silence} />
          </div>
        )}
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
