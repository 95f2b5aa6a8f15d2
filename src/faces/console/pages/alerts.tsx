import { Button, Checkbox, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { formatDuration } from "#lib/format.ts";
import { ALERT_KINDS, ALERT_SORTS, type AlertKind, SEVERITIES, UNRESOLVED_STATES } from "#model/kinds.ts";
import { useOperationPages } from "../api/ask.ts";
import type { Alert } from "../api/queries.ts";
import { useMay } from "../api/session.ts";
import { AlertText, headlineOf } from "../components/alert-lines.tsx";
import { Choices, SubtleButton } from "../components/buttons.tsx";
import { Ago, Moment, Severity } from "../components/facts.tsx";
import { PagedPanel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { useRowKeys } from "../state/keys.ts";
import { useSpan } from "../state/span.ts";
import { usePageLink, useUrlState } from "../state/url-state.ts";
import { useZones } from "../state/zones.ts";
import classes from "./alerts/alerts.module.css";
import { ManyActs } from "./alerts/many-acts.tsx";

const STATES = { open: UNRESOLVED_STATES, firing: ["firing"], resolved: ["resolved"], all: null } as const;
type StateName = keyof typeof STATES;
/** The words of the kinds that are not called by their name. */
const KIND_WORDS: Partial<Record<AlertKind, string>> = {
  "new-rule": "new rule",
  sources: "incident",
  "action-change": "changed action",
  "silent-rule": "silent rule",
  "custom-condition": "custom condition",
  late: "arrived late",
  self: "about Longwatch",
};

/** Every alert. Those that are open are shown whatever the span; the others by the time at which they fired. */
export default function AlertsPage() {
  const { params, change } = useUrlState();
  const { chosen, asked, isShown } = useZones();
  const span = useSpan();
  const { length } = span;
  const named = params.get("state") ?? "open";
  const state: StateName = Object.hasOwn(STATES, named) ? (named as StateName) : "open";
  const read = <Name extends string>(param: string, names: readonly Name[]) => {
    const words = (params.get(param) ?? "").split(",");
    return names.filter((name) => words.includes(name));
  };
  const severity = read("severity", SEVERITIES);
  const kind = read("kind", ALERT_KINDS);
  const rule = params.get("rule");
  const isTimed = state === "resolved" || state === "all";
  const sort = params.get("sort") === "newest" ? "newest" : "worst";
  const found = useOperationPages(
    "alerts.list",
    {
      limit: 100,
      sort,
      severity,
      kind,
      rule,
      state: STATES[state],
      zone: asked,
      since: isTimed ? Math.floor(span.fromMs / 60_000) * 60_000 : null,
      until: isTimed && span.name === null ? Math.ceil(span.toMs) : null,
    },
    { refetchInterval: 60_000 },
  );
  const toggle = (name: string, all: readonly string[], value: string) => {
    const next = all.includes(value) ? all.filter((one) => one !== value) : [...all, value];
    change({ [name]: next.length === 0 ? null : next.join(",") });
  };
  const isNarrow = severity.length + kind.length > 0 || rule !== null || chosen !== "";
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Alerts</h1>
      <div className="lw-bar">
        <SegmentedControl
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
      <PagedPanel
        title="Alerts"
        about={`${
          isTimed
            ? `that fired in ${span.name === null ? "the chosen span" : `the last ${length}`}`
            : `${state === "open" ? "firing or acknowledged" : "firing, and not acknowledged"}, whenever they fired`
        }, ${sort === "worst" ? "firing first, the worst first" : "newest first"}`}
        actions={
          <SegmentedControl
            aria-label="Order"
            data={[...ALERT_SORTS]}
            value={sort}
            onChange={(value) => change({ sort: value === "worst" ? null : value })}
          />
        }
        query={found}
        isShown={({ zoneId }) => isShown(zoneId)}
        none={`${wordNone(state, length)}${isNarrow ? " with these filters" : ""}.`}
        noneAction={
          isNarrow ? (
            <SubtleButton
              word="Remove the filters"
              onClick={() => change({ severity: null, kind: null, rule: null, zone: null })}
            />
          ) : isTimed ? null : (
            <SubtleButton word="Show earlier alerts" onClick={() => change({ state: "all" })} />
          )
        }
      >
        {(alerts) => <AlertTable alerts={alerts} />}
      </PagedPanel>
    </div>
  );
}

function wordNone(state: StateName, length: string): string {
  if (state === "all") return `No alert fired in the last ${length}`;
  return state === "resolved" ? `No alert of the last ${length} is resolved` : `No alert is ${state}`;
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
      <ul className="lw-list">
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
  const { id, severity, state, kind, firedAt, resolvedAt, silence, incidentId, unsent } = alert;
  const part = incidentId === null ? "" : ` · part of alert ${incidentId}, which notifies`;
  const link = usePageLink();
  const [, navigate] = useLocation();
  const path = link(`/alerts/${id}`);
  return (
    <li
      className={`lw-row ${classes["row"]}`}
      data-row={index}
      data-state={state}
      data-silenced={silence !== null || incidentId !== null || unsent !== null || undefined}
      data-chosen={isChosen || undefined}
      onClick={() => navigate(path)}
    >
      <div className={classes["pick"]} onClick={(event) => event.stopPropagation()}>
        {onSelect === null ? null : (
          <Checkbox aria-label={`Select alert ${id}`} checked={isSelected} onChange={onSelect} />
        )}
      </div>
      <Severity severity={severity} state={state} />
      <div className={classes["what"]}>
        <AlertText
          alert={alert}
          headline={
            <Link href={path} onClick={(event) => event.stopPropagation()}>
              <Payload prose text={headlineOf(alert)} />
            </Link>
          }
          about={` · ${KIND_WORDS[kind as AlertKind] ?? kind} · alert ${id}${part}`}
          after={
            <>
              <Payload say=" · taken by " prose text={alert.acknowledgedBy} />
              <Payload say=" · assigned to " prose text={alert.assignedTo} />
            </>
          }
        />
      </div>
      <div className={classes["when"]}>
        <Ago at={firedAt} />
        <div className="lw-note">
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
