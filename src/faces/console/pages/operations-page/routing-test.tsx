import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { formatDuration } from "#lib/format.ts";
import { type RouteVerdict, SEVERITIES, SPIKE_KINDS } from "#model/kinds.ts";
import { type ExplainedRouting, type RoutingQuestion, useRoutingTest } from "../../api/operations.ts";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, QueryView } from "../../components/states.tsx";
import { useUrlState } from "../../state/url-state.ts";
import { useZones, zoneTitle } from "../../state/zones.ts";
import classes from "./operations.module.css";

/** "Who would be notified of this alert now?", answered step by step. The question is in the address. */
export function RoutingTest() {
  const { params, change } = useUrlState();
  const { all, only } = useZones();
  const asked = readQuestion(params);
  const answer = useRoutingTest(asked);
  const [zone, setZone] = useState(String(asked?.zone ?? only?.id ?? all[0]?.id ?? ""));
  const [rule, setRule] = useState(asked?.rule ?? "942100");
  const [severity, setSeverity] = useState(asked?.severity ?? "critical");
  const [kind, setKind] = useState(asked?.kind ?? "spike");
  return (
    <Panel
      title="Who would be notified?"
      about="with the routes, silences and quiet hours of this moment"
      flush
    >
      <form
        className={classes["question"]}
        onSubmit={(event) => {
          event.preventDefault();
          change({ of: zone, rule: rule.trim(), severity, kind });
        }}
      >
        <Select
          size="xs"
          label="Zone"
          allowDeselect={false}
          data={all.map((one) => ({ value: String(one.id), label: zoneTitle(one) }))}
          value={zone === "" ? String(all[0]?.id ?? "") : zone}
          onChange={(value) => setZone(value ?? "")}
        />
        <TextInput
          size="xs"
          label="Rule"
          maxLength={255}
          value={rule}
          onChange={(event) => setRule(event.currentTarget.value)}
        />
        <Select
          size="xs"
          label="Severity"
          allowDeselect={false}
          data={SEVERITIES.toReversed()}
          value={severity}
          onChange={(value) => setSeverity(value ?? "critical")}
        />
        <Select
          size="xs"
          label="Kind"
          allowDeselect={false}
          data={SPIKE_KINDS.map((value) => ({ value, label: value.replace("-", " ") }))}
          value={kind}
          onChange={(value) => setKind(value ?? "spike")}
        />
        <Button type="submit" size="xs">
          Ask
        </Button>
      </form>
      {asked === null ? (
        <Empty>Choose an alert that could fire. Nothing is sent.</Empty>
      ) : (
        <QueryView query={answer} rows={4} asking="the routing tree">
          {(found) => <Steps found={found} />}
        </QueryView>
      )}
    </Panel>
  );
}

function readQuestion(params: URLSearchParams): RoutingQuestion | null {
  const [zone, rule, severity, kind] = ["of", "rule", "severity", "kind"].map((name) => params.get(name));
  if (!/^[1-9]\d{0,9}$/.test(zone ?? "") || rule === null || rule === undefined) return null;
  return {
    zone: Number(zone),
    rule,
    severity: SEVERITIES.find((one) => one === severity) ?? "critical",
    kind: SPIKE_KINDS.find((one) => one === kind) ?? "spike",
  };
}

const VERDICTS: Readonly<Record<RouteVerdict, string>> = {
  taken: "matches: its channels are notified",
  "passed on": "matches, and one of its routes decides",
  "no match": "does not match",
  skipped: "is not reached: a route above it took the alert",
};

function Steps({ found }: { readonly found: ExplainedRouting }) {
  const { routes, quietHours, inhibitedBy, silencedBy, transitions, timing } = found;
  return (
    <div className={classes["steps"]}>
      <h3>1. Routes, from the top</h3>
      <ol className={classes["list"]}>
        {routes.map(({ path, verdict, mismatches, channels }) => (
          <li key={path} data-verdict={verdict}>
            <code>
              <Payload text={path} />
            </code>{" "}
            {VERDICTS[verdict]}
            {mismatches.length === 0 ? null : (
              <>
                : <Payload prose text={mismatches.join(", ")} />
              </>
            )}
            {verdict === "taken" && channels.length > 0 ? (
              <>
                {" → "}
                <b>
                  <Payload prose text={channels.join(", ")} />
                </b>
              </>
            ) : null}
          </li>
        ))}
      </ol>
      <h3>2. Silence and inhibition</h3>
      <p>
        {silencedBy === null ? "No silence mutes it." : `Silence ${silencedBy} mutes it.`}{" "}
        {inhibitedBy === null ? (
          "Nothing inhibits it."
        ) : (
          <>
            It is inhibited: <Payload prose text={inhibitedBy} />
          </>
        )}
      </p>
      <h3>3. Quiet hours</h3>
      {quietHours.length === 0 ? (
        <p>None are configured.</p>
      ) : (
        <ol className={classes["list"]}>
          {quietHours.map(({ path, verdict, channels }) => (
            <li key={path}>
              <code>
                <Payload text={path} />
              </code>{" "}
              {verdict} <Payload prose text={channels.join(", ")} none="" />
            </li>
          ))}
        </ol>
      )}
      <h3>4. Who is notified</h3>
      <ul className={classes["list"]}>
        {transitions.map(({ reason, severity, notified, updated, waiting, held }, index) => (
          <li key={`${reason} ${index}`}>
            <b>{reason}</b> ({severity}) · <Named word="notified" names={notified} />
            <Named word="updated in place" names={updated} />
            <Named word="waits" names={waiting} />
            <Named word="held by quiet hours" names={held} />
            {[notified, updated, waiting, held].every(({ length }) => length === 0) ? "nobody" : ""}
          </li>
        ))}
      </ul>
      <p className="lw-note">
        Group wait {formatDuration(timing.groupWaitMs)}, group interval{" "}
        {formatDuration(timing.groupIntervalMs)}, repeated every {formatDuration(timing.repeatIntervalMs)}.
      </p>
    </div>
  );
}

function Named({ word, names }: { readonly word: string; readonly names: readonly string[] }) {
  if (names.length === 0) return null;
  return (
    <>
      {word}: <Payload prose text={names.join(", ")} />.{" "}
    </>
  );
}
