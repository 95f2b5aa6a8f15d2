import { Link, useLocation } from "wouter";
import { formatNumber } from "../../lib/format.ts";
import { type Rule, useRules } from "../api/rule.ts";
import { Panel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { Empty, QueryView } from "../components/states.tsx";
import { formatCount, formatLength, NO_VALUE } from "../look/words.ts";
import { useRowKeys } from "../state/row-keys.ts";
import { useRuleLink } from "../state/rule-link.ts";
import { useSpan } from "../state/span.ts";
import { useZones, useZoneTitle } from "../state/zones.ts";
import classes from "./rule/rule.module.css";

const MOST = 500;
const LONGEST_DAYS = 400;

/** Every rule with an event in the span, the one with most events first. */
export default function RulesPage() {
  const { only, chosen, zones } = useZones();
  const span = useSpan();
  const from = Math.max(Math.floor(span.fromMs), Math.ceil(span.toMs) - LONGEST_DAYS * 86_400_000);
  const found = useRules({
    zone: chosen === "" ? null : (only?.id ?? null),
    from,
    to: Math.ceil(span.toMs),
    limit: MOST,
  });
  const ids = new Set(zones.map(({ id }) => id));
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Rules</h1>
      <Panel
        title="Rules"
        about={`events in ${formatLength(span.toMs - from)}, most first; usual: of the last 28 days`}
        flush
      >
        <QueryView query={found} rows={10} asking="the counts of every rule">
          {({ items, next }) => {
            const shown = items.filter(({ zoneId }) => chosen === "" || ids.has(zoneId));
            if (shown.length === 0)
              return <Empty>No rule had an event in this span. Choose a longer span in the header.</Empty>;
            return (
              <>
                <RuleTable rules={shown} hasZone={only === null} />
                {next === null ? null : (
                  <p className={classes["hint"]}>
                    These are the {MOST} rules with the most events. The API lists all of them.
                  </p>
                )}
              </>
            );
          }}
        </QueryView>
      </Panel>
    </div>
  );
}

function RuleTable({ rules, hasZone }: { readonly rules: readonly Rule[]; readonly hasZone: boolean }) {
  const link = useRuleLink();
  const [, navigate] = useLocation();
  const [chosen] = useRowKeys({
    count: rules.length,
    onOpen: (index) => {
      const rule = rules[index];
      if (rule !== undefined) navigate(link(rule.zoneId, rule.ruleId));
    },
    onMove: (index) => document.querySelector(`[data-row="${index}"]`)?.scrollIntoView({ block: "nearest" }),
  });
  return (
    <table className="lw-table">
      <thead>
        <tr>
          <th>rule</th>
          <th className="lw-number lw-wide">blocked</th>
          <th className="lw-number lw-wide">challenged</th>
          <th className="lw-number lw-wide">logged</th>
          <th className="lw-number">usual → now</th>
          <th className="lw-number">change</th>
        </tr>
      </thead>
      <tbody>
        {rules.map((rule, index) => (
          <RuleRow
            key={`${rule.zoneId} ${rule.ruleId}`}
            rule={rule}
            hasZone={hasZone}
            index={index}
            isChosen={index === chosen}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly rule: Rule;
  readonly hasZone: boolean;
  readonly index: number;
  readonly isChosen: boolean;
}

function RuleRow({ rule, hasZone, index, isChosen }: RowProps) {
  const { zoneId, ruleId, title, total, baseline, openSpikeId } = rule;
  const link = useRuleLink();
  const zoneName = useZoneTitle();
  const times = baseline === null || baseline === 0 ? null : total / baseline;
  return (
    <tr className={classes["row"]} data-row={index} data-chosen={isChosen || undefined}>
      <td>
        <Link href={link(zoneId, ruleId)}>
          <Payload prose text={ruleId} none={NO_VALUE} />
        </Link>{" "}
        {title ?? ""}
        {hasZone ? <span className="lw-dim"> · {zoneName(zoneId)}</span> : null}
        {openSpikeId === null ? null : <span className="lw-fire"> ● spike</span>}
      </td>
      <td className="lw-number lw-wide">{formatCount(rule.blocked)}</td>
      <td className="lw-number lw-wide">{formatCount(rule.challenged)}</td>
      <td className="lw-number lw-wide">{formatCount(rule.logged)}</td>
      <td className="lw-number">
        <span className="lw-dim">{baseline === null ? "unknown" : formatNumber(baseline)} →</span>{" "}
        <b>{formatCount(total)}</b>
      </td>
      <td className="lw-number">{times === null ? "" : `${formatNumber(times)}x`}</td>
    </tr>
  );
}
