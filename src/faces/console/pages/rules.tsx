import { TextInput } from "@mantine/core";
import { Link, useLocation } from "wouter";
import { formatNumber } from "#lib/format.ts";
import { useOperation } from "../api/ask.ts";
import type { Rule } from "../api/queries.ts";
import { SubtleButton } from "../components/buttons.tsx";
import { Sparkline } from "../components/charts.tsx";
import { DataTable, QueryPanel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { Empty } from "../components/states.tsx";
import { useRowKeys } from "../state/keys.ts";
import { useSpan } from "../state/span.ts";
import { useRuleLink, useUrlState } from "../state/url-state.ts";
import { useZones, useZoneTitle } from "../state/zones.ts";
import { formatCount, formatLength, NO_VALUE } from "../style/words.ts";
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
const COUNTS = ["blocked", "challenged", "logged"] as const;

/** Every rule with an event in the span. The address has the order and the filters. */
export default function RulesPage() {
  const { only, asked, isShown } = useZones();
  const { params, change } = useUrlState();
  const span = useSpan();
  const from = Math.max(Math.floor(span.fromMs), Math.ceil(span.toMs) - LONGEST_DAYS * 86_400_000);
  // The rules of the span, the one with most events first.
  const found = useOperation("rules.list", {
    zone: asked,
    from,
    to: Math.ceil(span.toMs),
    limit: MOST,
    points: TREND_POINTS,
  });
  const text = params.get("find") ?? "";
  const isSpiking = params.get("spiking") === "1";
  const order = readOrder(params.get("sort"));
  const clear = () => change({ find: null, spiking: null });
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Rules</h1>
      <div className="lw-bar">
        <TextInput
          w={240}
          aria-label="Find a rule"
          placeholder="Find a rule: number or title"
          value={text}
          onChange={({ currentTarget: { value } }) =>
            change({ find: value === "" ? null : value }, { replace: true })
          }
        />
        <SubtleButton
          isPressed={isSpiking}
          word="spiking"
          onClick={() => change({ spiking: isSpiking ? null : "1" })}
        />
      </div>
      <QueryPanel
        title="Rules"
        about={`events in ${formatLength(span.toMs - from)}; usual: of the last 28 days`}
        query={found}
        rows={10}
        asking="the counts of every rule"
      >
        {({ items, next }) => {
          const ofZones = items.filter(({ zoneId }) => isShown(zoneId));
          const shown = arrangeRules(ofZones, order, { text, isSpiking });
          if (ofZones.length === 0)
            return <Empty>No rule had an event in this span. Choose a longer span in the header.</Empty>;
          return (
            <>
              <RuleTable rules={shown} order={order} hasZone={only === null} />
              {shown.length === 0 ? (
                <Empty action={<SubtleButton word="Remove the filters" onClick={clear} />}>
                  None of the {ofZones.length} rules matches the filters.
                </Empty>
              ) : null}
              {next === null ? null : (
                <div className="lw-hint">
                  These are the {MOST} rules with the most events. The API lists all of them.
                </div>
              )}
            </>
          );
        }}
      </QueryPanel>
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
  const zoneName = useZoneTitle();
  const { change } = useUrlState();
  const [, navigate] = useLocation();
  const [chosen] = useRowKeys({
    count: rules.length,
    onOpen: (index) => {
      const rule = rules[index];
      if (rule !== undefined) navigate(link(rule.zoneId, rule.ruleId));
    },
  });
  /** A heading that sorts. */
  const sorting = (column: RuleColumn, word: string = column) => {
    const sort = order.column !== column ? undefined : order.isDescending ? "descending" : "ascending";
    const head = (
      <button
        type="button"
        className={`lw-plain ${classes["sort"]}`}
        onClick={() => change({ sort: nextOrder(order, column) }, { replace: true })}
      >
        {word}
        <span aria-hidden="true">{sort === undefined ? "" : sort === "descending" ? " ▼" : " ▲"}</span>
      </button>
    );
    return { head, sort } as const;
  };
  return (
    <DataTable
      className={classes["rules"]}
      rows={rules}
      idOf={({ zoneId, ruleId }) => `${zoneId} ${ruleId}`}
      chosen={chosen}
      columns={[
        {
          ...sorting("rule"),
          cell: ({ zoneId, ruleId, title, openSpikeId }) => (
            <>
              <Link href={link(zoneId, ruleId)}>
                <Payload prose text={ruleId} none={NO_VALUE} />
              </Link>{" "}
              {title ?? ""}
              {hasZone ? <span className="lw-dim"> · {zoneName(zoneId)}</span> : null}
              {openSpikeId === null ? null : <span className="lw-fire"> ● spike</span>}
            </>
          ),
        },
        ...COUNTS.map((name) => ({
          ...sorting(name),
          className: "lw-number lw-wide",
          cell: (rule: Rule) => formatCount(rule[name]),
        })),
        {
          ...sorting("total", "usual → current"),
          className: "lw-number",
          cell: ({ baseline, total }) => (
            <>
              <span className="lw-dim">{baseline === null ? "unknown" : formatNumber(baseline)} →</span>{" "}
              <b>{formatCount(total)}</b>
            </>
          ),
        },
        { ...sorting("change"), className: "lw-number", cell: wordChange },
        {
          head: "trend",
          cell: ({ sparkline, ruleId }) => (
            <Sparkline values={sparkline ?? []} width={72} label={`Events of rule ${ruleId} over the span`} />
          ),
        },
      ]}
    />
  );
}

function wordChange(rule: Rule): string {
  const times = changeOf(rule);
  return times === null ? (rule.baseline === 0 ? "new" : "") : `${formatNumber(times)}x`;
}
