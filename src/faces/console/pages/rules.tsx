import { Button, TextInput } from "@mantine/core";
import { Link, useLocation } from "wouter";
import { formatNumber } from "#lib/format.ts";
import { type Rule, useRules } from "../api/rule.ts";
import { Panel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { Sparkline } from "../components/sparkline.tsx";
import { Empty, QueryView } from "../components/states.tsx";
import { formatCount, formatLength, NO_VALUE } from "../look/words.ts";
import { useRowKeys } from "../state/row-keys.ts";
import { useRuleLink } from "../state/rule-link.ts";
import { useSpan } from "../state/span.ts";
import { useUrlState } from "../state/url-state.ts";
import { useZones, useZoneTitle } from "../state/zones.ts";
import {
  arrangeRules,
  changeOf,
  nextOrder,
  type RuleColumn,
  type RuleOrder,
  readOrder,
} from "./rule/arrange-rules.ts";
import classes from "./rule/rule.module.css";

const MOST = 500;
const LONGEST_DAYS = 400;
const TREND_POINTS = 30;

/** Every rule with an event in the span. The address has the order and the filters. */
export default function RulesPage() {
  const { only, chosen, zones } = useZones();
  const { params, change } = useUrlState();
  const span = useSpan();
  const from = Math.max(Math.floor(span.fromMs), Math.ceil(span.toMs) - LONGEST_DAYS * 86_400_000);
  const found = useRules({
    zone: chosen === "" ? null : (only?.id ?? null),
    from,
    to: Math.ceil(span.toMs),
    limit: MOST,
    points: TREND_POINTS,
  });
  const ids = new Set(zones.map(({ id }) => id));
  const text = params.get("find") ?? "";
  const isSpiking = params.get("spiking") === "1";
  const order = readOrder(params.get("sort"));
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Rules</h1>
      <div className="lw-bar">
        <TextInput
          size="xs"
          w={240}
          aria-label="Find a rule"
          placeholder="Find a rule: number or title"
          value={text}
          onChange={({ currentTarget: { value } }) =>
            change({ find: value === "" ? null : value }, { replace: true })
          }
        />
        <Button
          variant={isSpiking ? "light" : "default"}
          aria-pressed={isSpiking}
          onClick={() => change({ spiking: isSpiking ? null : "1" })}
        >
          spiking now
        </Button>
      </div>
      <Panel
        title="Rules"
        about={`events in ${formatLength(span.toMs - from)}; usual: of the last 28 days`}
        flush
      >
        <QueryView query={found} rows={10} asking="the counts of every rule">
          {({ items, next }) => {
            const ofZones = items.filter(({ zoneId }) => chosen === "" || ids.has(zoneId));
            const shown = arrangeRules(ofZones, order, { text, isSpiking });
            if (ofZones.length === 0)
              return <Empty>No rule had an event in this span. Choose a longer span in the header.</Empty>;
            return (
              <>
                <RuleTable rules={shown} order={order} hasZone={only === null} />
                {shown.length === 0 ? (
                  <Empty
                    action={
                      <Button variant="default" onClick={() => change({ find: null, spiking: null })}>
                        Remove the filters
                      </Button>
                    }
                  >
                    None of the {ofZones.length} rules matches the filters.
                  </Empty>
                ) : null}
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

interface TableProps {
  readonly rules: readonly Rule[];
  readonly order: RuleOrder;
  readonly hasZone: boolean;
}

function RuleTable({ rules, order, hasZone }: TableProps) {
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
    <table className={`lw-table ${classes["rules"]}`}>
      <thead>
        <tr>
          <Head column="rule" order={order} />
          <Head column="blocked" order={order} className="lw-number lw-wide" />
          <Head column="challenged" order={order} className="lw-number lw-wide" />
          <Head column="logged" order={order} className="lw-number lw-wide" />
          <Head column="total" order={order} className="lw-number" word="usual → now" />
          <Head column="change" order={order} className="lw-number" />
          <th>trend</th>
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

interface HeadProps {
  readonly column: RuleColumn;
  readonly order: RuleOrder;
  readonly className?: string;
  readonly word?: string;
}

/** A heading that sorts. */
function Head({ column, order, className, word = column }: HeadProps) {
  const { change } = useUrlState();
  const isSorted = order.column === column;
  return (
    <th
      className={className}
      aria-sort={isSorted ? (order.isDescending ? "descending" : "ascending") : undefined}
    >
      <button
        type="button"
        className={classes["sort"]}
        onClick={() => change({ sort: nextOrder(order, column) }, { replace: true })}
      >
        {word}
        <span aria-hidden="true">{isSorted ? (order.isDescending ? " ▼" : " ▲") : ""}</span>
      </button>
    </th>
  );
}

interface RowProps {
  readonly rule: Rule;
  readonly hasZone: boolean;
  readonly index: number;
  readonly isChosen: boolean;
}

function RuleRow({ rule, hasZone, index, isChosen }: RowProps) {
  const { zoneId, ruleId, title, total, baseline, openSpikeId, sparkline } = rule;
  const link = useRuleLink();
  const zoneName = useZoneTitle();
  const times = changeOf(rule);
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
      <td className="lw-number">
        {times === null ? (baseline === 0 ? "new" : "") : `${formatNumber(times)}x`}
      </td>
      <td>
        <Sparkline values={sparkline ?? []} width={72} label={`Events of rule ${ruleId} over the span`} />
      </td>
    </tr>
  );
}
