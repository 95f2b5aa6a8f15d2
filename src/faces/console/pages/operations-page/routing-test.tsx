import { Button, Select, TextInput } from "@mantine/core";
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { ExplainedRouting } from "#alerts/test-routes.ts";
import { useFields } from "#faces/console/components/forms.tsx";
import { formatDuration } from "#lib/format.ts";
import { type RouteVerdict, SEVERITIES, SPIKE_KINDS } from "#model/kinds.ts";
import { call } from "../../api/client.ts";
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
  // It names the channels that Longwatch would notify of such an alert now.
  const answer = useQuery({
    queryKey: ["routing-test", asked],
    queryFn: ({ signal }) => call<ExplainedRouting>("/api/v1/routing/test", { query: { ...asked }, signal }),
    enabled: asked !== null,
    placeholderData: keepPreviousData,
  });
  const { values, text, choice } = useFields({
    zone: String(asked?.zone ?? only?.id ?? all[0]?.id ?? ""),
    rule: asked?.rule ?? "942100",
    severity: asked?.severity ?? "critical",
    kind: asked?.kind ?? "spike",
  });
  const zone = values.zone === "" ? String(all[0]?.id ?? "") : values.zone;
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
          const { rule, severity, kind } = values;
          change({ of: zone, rule: rule.trim(), severity, kind });
        }}
      >
        <Select
          label="Zone"
          data={all.map((one) => ({ value: String(one.id), label: zoneTitle(one) }))}
          {...choice("zone")}
          value={zone}
        />
        <TextInput label="Rule" maxLength={255} {...text("rule")} />
        <Select label="Severity" data={SEVERITIES.toReversed()} {...choice("severity")} />
        <Select
          label="Kind"
          data={SPIKE_KINDS.map((value) => ({ value, label: value.replace("-", " ") }))}
          {...choice("kind")}
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

function readQuestion(params: URLSearchParams) {
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
            <Names say=": " of={mismatches} />
            <b>
              <Names say=" → " of={verdict === "taken" ? channels : []} />
            </b>
          </li>
        ))}
      </ol>
      <h3>2. Silence and inhibition</h3>
      <p>
        {silencedBy === null ? "No silence mutes it." : `Silence ${silencedBy} mutes it.`}{" "}
        {inhibitedBy === null ? "Nothing inhibits it." : ""}
        <Payload say="It is inhibited: " prose text={inhibitedBy} />
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
              {verdict}
              <Names say=" " of={channels} />
            </li>
          ))}
        </ol>
      )}
      <h3>4. Who is notified</h3>
      <ul className={classes["list"]}>
        {transitions.map(({ reason, severity, notified, updated, waiting, held }, index) => (
          <li key={`${reason} ${index}`}>
            <b>{reason}</b> ({severity}) ·
            <Names say=" notified: " of={notified} end="." />
            <Names say=" updated in place: " of={updated} end="." />
            <Names say=" waits: " of={waiting} end="." />
            <Names say=" after quiet hours: " of={held} end="." />
            {[notified, updated, waiting, held].every(({ length }) => length === 0) ? " nobody" : ""}
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

interface NamesProps {
  readonly say: string;
  readonly of: readonly string[];
  readonly end?: string;
}

function Names({ say, of, end = "" }: NamesProps) {
  return of.length === 0 ? null : (
    <>
      <Payload say={say} prose text={of.join(", ")} />
      {end}
    </>
  );
}
