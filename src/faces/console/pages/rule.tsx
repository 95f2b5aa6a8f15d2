/** The page of a rule. */
import { useParams } from "wouter";
import { DAY_MS } from "#lib/units.ts";
import { useOperation } from "../api/ask.ts";
import type { RuleFacts } from "../api/queries.ts";
import { TimeSeries } from "../components/charts.tsx";
import { DataTable, Panel } from "../components/panel.tsx";
import { Empty, QueryView } from "../components/states.tsx";
import { useUrlState } from "../state/url-state.ts";
import { formatCount } from "../style/words.ts";
import { RuleCurve, RuleHead } from "./rule/rule-curve.tsx";
import { AdviceHistory, Exclusions, Spikes } from "./rule/spikes.tsx";
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
