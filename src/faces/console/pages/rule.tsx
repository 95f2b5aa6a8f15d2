/** The page of a rule: its curve, spikes, exclusions and advice. */

import { Box } from "@mantine/core";
import { Link, useParams } from "wouter";
import { useOperation } from "#faces/console/api/ask.ts";
import {
  type RuleFacts,
  type RuleKey,
  type RuleSeries,
  useAlertContext,
} from "#faces/console/api/queries.ts";
import { TimeSeries } from "#faces/console/components/charts.tsx";
import { Compared } from "#faces/console/components/compared.tsx";
import { AdviceText, Ago, Moment, Rows, Severity } from "#faces/console/components/facts.tsx";
import { DataTable, Panel, QueryPanel } from "#faces/console/components/panel.tsx";
import { PageEventsContext, Payload } from "#faces/console/components/payload.tsx";
import { Empty, QueryView } from "#faces/console/components/states.tsx";
import { toSpanParams } from "#faces/console/state/filters.ts";
import { useNow } from "#faces/console/state/now.tsx";
import { usePageLink, useUrlState } from "#faces/console/state/url-state.ts";
import { formatCount } from "#faces/console/style/words.ts";
import { formatDuration } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { Clause } from "./alert/exclusion.tsx";
import classes from "./rule/rule.module.css";
import { RuleCurve, RuleHead, useCurve } from "./rule/rule-curve.tsx";
import { Tuning } from "./rule/tuning.tsx";

/** One rule of one zone: how often it is triggered, what is unusual, who did it, and which threshold fits it. */
export default function RulePage() {
  const { zone } = useParams<{ zone: string }>();
  const { params } = useUrlState();
  const rule = params.get("rule");
  if (rule === null || !/^[1-9]\d{0,9}$/.test(zone))
    return <Empty>The address names no rule. Choose one on the page Rules.</Empty>;
  return <OneRule key={`${zone} ${rule}`} zone={Number(zone)} rule={rule} />;
}

function OneRule({ zone, rule }: { readonly zone: number; readonly rule: string }) {
  // The recommendations for the rule, and the platform's own daily counts.
  const facts = useOperation("rules.facts", { zone, rule }, { staleTime: 60_000 });
  return (
    <div className="lw-page">
      <RuleHead zone={zone} rule={rule} />
      <RuleCurve zone={zone} rule={rule} />
      <Spikes zone={zone} rule={rule} />
      <Exclusions zone={zone} rule={rule} />
      <Tuning zone={zone} rule={rule} />
      <QueryView query={facts} rows={4} asking="recommendations and the platform's counts">
        {({ advice, days }) => (
          <div className="lw-columns">
            <PlatformCounts days={days} />
            <AdviceHistory advice={advice} />
          </div>
        )}
      </QueryView>
    </div>
  );
}

const SHOWN = 10;

/** The platform's own daily counts beside the stored events. */
function PlatformCounts({ days }: Pick<RuleFacts, "days">) {
  return (
    <Panel title="Platform's counts and ours" about="per UTC day, 28 days" flush>
      {days.length === 0 ? (
        <Empty>The platform's counts of this rule were not read yet.</Empty>
      ) : (
        <Counts days={days} />
      )}
    </Panel>
  );
}

function Counts({ days }: Pick<RuleFacts, "days">) {
  const both = days.filter(({ platform, stored }) => platform !== null && stored > 0);
  const differing = both.filter(({ platform, stored }) => platform !== stored);
  const stored = { id: "stored", label: "stored", colour: "var(--lw-accent)" };
  const platform = { id: "platform", label: "the platform", colour: "var(--lw-warn)" };
  return (
    <>
      <TimeSeries
        timesMs={days.map(({ day }) => Date.parse(day))}
        widthMs={DAY_MS}
        series={[{ ...stored, values: days.map((day) => day.stored) }]}
        lines={[{ ...platform, values: days.map((day) => day.platform) }]}
        height={140}
        label={`Stored events and the platform's own counts of ${days.length} days`}
      />
      <div className="lw-hint">
        {differing.length === 0
          ? `On each of the ${both.length} days that both know, the counts are equal.`
          : `The counts differ on ${differing.length} of ${both.length} days. The platform's daily counts may be late or inexact.`}
      </div>
      {differing.length === 0 ? null : (
        <DataTable
          rows={differing.slice(-SHOWN)}
          idOf={({ day }) => day}
          columns={[
            { head: "day (UTC)", cell: ({ day }) => day },
            { head: "the platform", className: "lw-number", cell: (day) => formatCount(day.platform ?? 0) },
            { head: "stored", className: "lw-number", cell: (day) => formatCount(day.stored) },
          ]}
        />
      )}
    </>
  );
}

type Spike = RuleSeries["spikes"][number];
const SHOWN_SPIKES = 20;

/** The spikes of the span, and who, where and what of the chosen one. */
function Spikes(key: RuleKey) {
  const { series } = useCurve(key);
  const { params } = useUrlState();
  if (series.data === undefined) return null;
  const spikes = series.data.spikes.toReversed();
  const chosen = spikes.find(({ id }) => String(id) === params.get("spike")) ?? spikes[0];
  return (
    <>
      <Panel title="Spikes" about="in the span, newest first" flush>
        <Rows
          of={spikes.slice(0, SHOWN_SPIKES)}
          none="The detector found no spike in this span. Choose a longer span in the header."
        >
          {(spike) => <SpikeRow key={spike.id} spike={spike} isChosen={spike === chosen} />}
        </Rows>
        {spikes.length > SHOWN_SPIKES ? (
          <div className="lw-hint">{spikes.length - SHOWN_SPIKES} more: narrow the span to see them.</div>
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
function Exclusions({ zone, rule }: RuleKey) {
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
function AdviceHistory({ advice }: Pick<RuleFacts, "advice">) {
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
