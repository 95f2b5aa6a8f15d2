import { Link } from "wouter";
import { formatDecimal, formatNumber } from "#lib/format.ts";
import { type Overview, useOverview } from "../../api/overview.ts";
import { Ago } from "../../components/ago.tsx";
import { FilterValue } from "../../components/filter-value.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Sparkline } from "../../components/sparkline.tsx";
import { Empty, QueryView } from "../../components/states.tsx";
import { formatCount, formatLength } from "../../look/words.ts";
import { useRuleLink } from "../../state/rule-link.ts";
import { useSpan } from "../../state/span.ts";
import { useZones, useZoneTitle } from "../../state/zones.ts";

const SHOWN = 7;
/** Below it a change is chance. */
const LEAST_EVENTS = 10;
/** So many rules are shown even if nothing changed much. */
const LEAST_SHOWN = 4;
const CHANGED_TIMES = 1.2;
const ADVICE_CHARS = 110;

type Rule = Overview["rules"][number];

function timesOf({ perMinute, usualPerMinute }: Rule): number | null {
  return usualPerMinute === null || usualPerMinute === 0 ? null : perMinute / usualPerMinute;
}

/** The rules whose count differs most from the usual one. */
export function ChangedRules() {
  const { only } = useZones();
  const span = useSpan();
  const overview = useOverview();
  const about = `events per minute over ${formatLength(span.toMs - span.fromMs)}, usual: of the last 28 days`;
  return (
    <Panel title="Rules that changed most" about={about} flush>
      <QueryView query={overview} rows={SHOWN} asking="the counts of every rule">
        {({ rules }) => {
          const shown = rules
            .filter(({ total, openSpikeId }) => total >= LEAST_EVENTS || openSpikeId !== null)
            .filter((rule, index) => {
              const times = timesOf(rule);
              return (
                index < LEAST_SHOWN || times === null || times > CHANGED_TIMES || rule.openSpikeId !== null
              );
            })
            .slice(0, SHOWN);
          if (shown.length === 0) return <Empty>No rule had an event in this span.</Empty>;
          return (
            <table className="lw-table">
              <thead>
                <tr>
                  <th>rule</th>
                  <th className="lw-number">usual → now</th>
                  <th className="lw-number">change</th>
                  <th className="lw-wide">trend</th>
                </tr>
              </thead>
              <tbody>
                {shown.map((rule) => (
                  <RuleRow key={`${rule.zoneId} ${rule.ruleId}`} rule={rule} hasZone={only === null} />
                ))}
              </tbody>
            </table>
          );
        }}
      </QueryView>
    </Panel>
  );
}

function RuleRow({ rule, hasZone }: { readonly rule: Rule; readonly hasZone: boolean }) {
  const { zoneId, ruleId, title, total, perMinute, usualPerMinute, sparkline, openSpikeId, advice } = rule;
  const zoneName = useZoneTitle();
  const link = useRuleLink();
  const times = timesOf(rule);
  return (
    <tr>
      <td>
        <FilterValue field="rule" value={ruleId}>
          <b>
            <Payload prose text={ruleId} />
          </b>
        </FilterValue>{" "}
        <Link href={link(zoneId, ruleId)}>{title ?? "see its rule"}</Link>
        {hasZone ? <span className="lw-dim"> · {zoneName(zoneId)}</span> : null}
        {openSpikeId === null ? null : <span className="lw-fire"> ● spike</span>}
        {advice === null ? null : (
          <div className="lw-note" title={advice.text}>
            Advice <Ago at={advice.askedAt} />: <Payload prose text={shorten(advice.text)} />
          </div>
        )}
      </td>
      <td className="lw-number">
        <span className="lw-dim">
          {usualPerMinute === null ? "unknown" : formatDecimal(usualPerMinute)} →
        </span>{" "}
        <b>{formatDecimal(perMinute)}</b>
        <div className="lw-note">{formatCount(total)} events</div>
      </td>
      <td className="lw-number">{times === null ? "" : `${formatNumber(times)}x`}</td>
      <td className="lw-wide">
        <Sparkline values={sparkline} label={`Events of rule ${ruleId} over the span`} />
      </td>
    </tr>
  );
}

/** The recommendation alone, where the platform marks it: what comes before repeats the counts. */
function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  const said = line.split("**Recommendation:**").at(-1)?.trim() ?? line;
  return said.length > ADVICE_CHARS ? `${said.slice(0, ADVICE_CHARS)} ...` : said;
}
