/** What happened to a rule: spikes, exclusions and advice. */

import { Box } from "@mantine/core";
import { Link } from "wouter";
import { formatDuration } from "#lib/format.ts";
import { useOperation } from "../../api/ask.ts";
import { type RuleFacts, type RuleKey, type RuleSeries, useAlertContext } from "../../api/queries.ts";
import { Compared } from "../../components/compared.tsx";
import { AdviceText, Ago, Moment, Rows, Severity } from "../../components/facts.tsx";
import { Panel, QueryPanel } from "../../components/panel.tsx";
import { PageEventsContext, Payload } from "../../components/payload.tsx";
import { Empty, QueryView } from "../../components/states.tsx";
import { toSpanParams } from "../../state/filters.ts";
import { useNow } from "../../state/now.tsx";
import { usePageLink, useUrlState } from "../../state/url-state.ts";
import { formatCount } from "../../style/words.ts";
import { Clause } from "../alert/exclusion.tsx";
import classes from "./rule.module.css";
import { useCurve } from "./rule-curve.tsx";

type Spike = RuleSeries["spikes"][number];
const SHOWN = 20;

/** The spikes of the span, and who, where and what of the chosen one. */
export function Spikes(key: RuleKey) {
  const { series } = useCurve(key);
  const { params } = useUrlState();
  if (series.data === undefined) return null;
  const spikes = series.data.spikes.toReversed();
  const chosen = spikes.find(({ id }) => String(id) === params.get("spike")) ?? spikes[0];
  return (
    <>
      <Panel title="Spikes" about="in the span, newest first" flush>
        <Rows
          of={spikes.slice(0, SHOWN)}
          none="The detector found no spike in this span. Choose a longer span in the header."
        >
          {(spike) => <SpikeRow key={spike.id} spike={spike} isChosen={spike === chosen} />}
        </Rows>
        {spikes.length > SHOWN ? (
          <div className="lw-hint">{spikes.length - SHOWN} more: narrow the span to see them.</div>
        ) : null}
      </Panel>
      {chosen === undefined || chosen.alertId === null ? null : (
        <During alertId={chosen.alertId} spike={chosen} of={key} />
      )}
    </>
  );
}

function SpikeRow({ spike, isChosen }: { readonly spike: Spike; readonly isChosen: boolean }) {
  const { id, openedAt, closedAt, severity, mark, peak, alertId, verdict } = spike;
  const nowMs = useNow();
  const link = usePageLink();
  const { change } = useUrlState();
  const lastedMs = (closedAt === null ? nowMs : Date.parse(closedAt)) - Date.parse(openedAt);
  return (
    <li data-chosen={isChosen || undefined} className={classes["spike"]}>
      <span>
        <Severity severity={severity} state={closedAt === null ? "firing" : "resolved"} />{" "}
        <Moment at={openedAt} /> · {closedAt === null ? "since " : ""}
        {formatDuration(lastedMs)}, peak {formatCount(peak)}
        <Payload say=" · " prose text={verdict} />
        {mark === null ? "" : ` · marked as ${mark}`}
      </span>
      <span className="lw-bar">
        {isChosen || alertId === null ? null : (
          <button
            type="button"
            className="lw-pick"
            onClick={() => change({ spike: String(id) }, { replace: true })}
          >
            who, where, what
          </button>
        )}
        {alertId === null ? null : <Link href={link(`/alerts/${alertId}`)}>alert {alertId}</Link>}
      </span>
    </li>
  );
}

interface DuringProps {
  readonly alertId: number;
  readonly spike: Pick<Spike, "openedAt" | "closedAt">;
  readonly of: RuleKey;
}

function During({ alertId, spike: { openedAt, closedAt }, of: { zone, rule } }: DuringProps) {
  const context = useAlertContext(String(alertId));
  const nowMs = useNow();
  const span = toSpanParams(Date.parse(openedAt), closedAt === null ? nowMs : Date.parse(closedAt));
  const events = {
    filters: [{ kind: "is" as const, field: "rule" as const, value: rule }],
    params: { ...span, zone: String(zone) },
  };
  return (
    <QueryView query={context} rows={4} asking="the events of the spike">
      {(found) => (
        <PageEventsContext value={events}>
          <Compared context={found} what="the spike" />
        </PageEventsContext>
      )}
    </QueryView>
  );
}

/** The exclusions that were proposed for the rule. Those that were followed are watched. */
export function Exclusions({ zone, rule }: RuleKey) {
  const listed = useOperation("exclusion.list", { zone }, { staleTime: 60_000 });
  return (
    <QueryPanel title="Proposed exclusions" about="of this rule; Longwatch applies none" query={listed}>
      {({ items }) => {
        const own = items.filter(({ ruleIds }) => ruleIds.includes(rule));
        if (own.length === 0) return <Empty>No exclusion was proposed for this rule.</Empty>;
        return own.map(({ id, proposedAt, followedAt, today, isHidden, ...clause }) => (
          <Box key={id} px={12} pb={8}>
            <Clause zone={zone} clause={clause} isHidden={isHidden} />
            <div className="lw-note">
              {isHidden ? "An address is in it, which your key does not see. " : ""}
              <Moment say="proposed " at={proposedAt} />
              <Moment say=", silent there since " at={followedAt} />
              {today === null
                ? ""
                : `, ${formatCount(today.events)} events there today, ${formatCount(today.suspicious)} suspicious`}
            </div>
          </Box>
        ));
      }}
    </QueryPanel>
  );
}

/** Every recommendation that was asked for, newest first, as plain text. The newest is open. */
export function AdviceHistory({ advice }: Pick<RuleFacts, "advice">) {
  return (
    <Panel title="Advice of the platform's AI" about="not verified, not applied" flush>
      {advice.length === 0 ? <Empty>No advice was asked for yet. A spike asks for it.</Empty> : null}
      {advice.map(({ askedAt, text, errorKey }, index) => (
        <details
          key={`${askedAt} ${index}`}
          className="lw-line"
          style={{ padding: "6px 12px" }}
          open={index === 0}
        >
          <summary>
            <Ago at={askedAt} />
            {text === null ? (
              <span className="lw-dim">
                {" "}
                · no advice: <Payload prose text={errorKey ?? "the platform gave none"} />
              </span>
            ) : null}
          </summary>
          {text === null ? null : <AdviceText text={text} />}
        </details>
      ))}
    </Panel>
  );
}
