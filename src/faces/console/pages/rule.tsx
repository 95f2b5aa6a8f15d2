import { useParams } from "wouter";
import { useOperation } from "../api/ask.ts";
import { Empty, QueryView } from "../components/states.tsx";
import { useUrlState } from "../state/url-state.ts";
import { AdviceHistory } from "./rule/advice-history.tsx";
import { Exclusions } from "./rule/exclusions.tsx";
import { PlatformCounts } from "./rule/platform-counts.tsx";
import { RuleCurve } from "./rule/rule-curve.tsx";
import { RuleHead } from "./rule/rule-head.tsx";
import { Spikes } from "./rule/spikes.tsx";
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
