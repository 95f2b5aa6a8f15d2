import { Link } from "wouter";
import { formatNumber } from "../../../lib/format.ts";
import { type RuleItem, useRules } from "../../api/rules.ts";
import { useTrend } from "../../api/trend.ts";
import { FilterValue } from "../../components/filter-value.tsx";
import { Panel } from "../../components/panel.tsx";
import { Sparkline } from "../../components/sparkline.tsx";
import { Empty, QueryView } from "../../components/states.tsx";
import { formatCount, formatLength } from "../../look/words.ts";
import { useSpan } from "../../state/span.ts";
import { usePageLink } from "../../state/url-state.ts";
import { useZones, useZoneTitle } from "../../state/zones.ts";
import classes from "./overview.module.css";

const SHOWN = 7;
/** So many rules are shown even if nothing changed much. */
const LEAST_SHOWN = 4;
/** In units of chance. */
const CHANGED = 3;
/** Below it a change is chance. */
const LEAST_EVENTS = 10;

/** How far a rule is above its usual count, in units of chance: 10 against 2 counts less than 1,000 against 200. */
function changeOf({ total, baseline }: RuleItem): number {
  if (baseline === null || total < LEAST_EVENTS) return 0;
  return (total - baseline) / Math.sqrt(baseline + 10);
}

/** The rules whose count differs most from the usual one. */
export function ChangedRules() {
  const { only, zones } = useZones();
  const span = useSpan();
  const query = useRules({ zone: only?.id ?? null, ...span }, 200);
  const ids = new Set(zones.map(({ id }) => id));
  return (
    <Panel
      title="Rules that changed most"
      about={`${formatLength(span.toMs - span.fromMs)} against the 28 days before`}
      flush
    >
      <QueryView query={query} rows={SHOWN} asking="the counts of every rule">
        {({ items }) => {
          const rules = items
            .filter(({ zoneId }) => ids.has(zoneId))
            .sort((one, other) => changeOf(other) - changeOf(one) || other.total - one.total)
            .filter(
              (rule, index) => index < LEAST_SHOWN || changeOf(rule) > CHANGED || rule.openSpikeId !== null,
            )
            .slice(0, SHOWN);
          if (rules.length === 0) return <Empty>No rule had an event in this span.</Empty>;
          return (
            <table className={classes["rules"]}>
              <thead>
                <tr>
                  <th>rule</th>
                  <th className={classes["number"]}>usual → now</th>
                  <th className={classes["number"]}>change</th>
                  <th className={classes["trend"]}>trend</th>
                </tr>
              </thead>
              <tbody>
                {rules.map((rule) => (
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

function RuleRow({ rule, hasZone }: { readonly rule: RuleItem; readonly hasZone: boolean }) {
  const { zoneId, ruleId, title, total, baseline, openSpikeId } = rule;
  const { all } = useZones();
  const span = useSpan();
  const zoneName = useZoneTitle();
  const link = usePageLink();
  const trend = useTrend(
    all.filter(({ id }) => id === zoneId),
    span,
    ruleId,
  );
  const times = baseline === null || baseline < 1 ? null : total / baseline;
  return (
    <tr>
      <td>
        <FilterValue field="ruleId" value={ruleId}>
          <b>{ruleId === "" ? "(none)" : ruleId}</b>
        </FilterValue>{" "}
        <Link href={link(`/rules/${zoneId}/${encodeURIComponent(ruleId)}`)}>{title ?? "rule page"}</Link>
        {hasZone ? <span className="lw-dim"> · {zoneName(zoneId)}</span> : null}
        {openSpikeId === null ? null : <span className="lw-fire"> ● spike</span>}
      </td>
      <td className={classes["number"]}>
        <span className="lw-dim">{baseline === null ? "unknown" : formatNumber(baseline)} →</span>{" "}
        <b>{formatCount(total)}</b>
      </td>
      <td className={classes["number"]}>{times === null ? "" : `${formatNumber(times)}x`}</td>
      <td className={classes["trend"]}>
        {trend.data === undefined ? null : (
          <Sparkline
            values={trend.data.counts.total.slice(-60)}
            label={`Events of rule ${ruleId} over time`}
          />
        )}
      </td>
    </tr>
  );
}
