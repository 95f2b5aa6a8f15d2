import { Button } from "@mantine/core";
import { useState } from "react";
import { Link } from "wouter";
import { formatDecimal, formatNumber } from "#lib/format.ts";
import type { Item } from "../../api/ask.ts";
import { type Overview, useChanges, useOverview } from "../../api/queries.ts";
import { Sparkline } from "../../components/charts.tsx";
import { Ago } from "../../components/facts.tsx";
import { DataTable, Panel, QueryPanel } from "../../components/panel.tsx";
import { FilterValue, Payload } from "../../components/payload.tsx";
import { Empty } from "../../components/states.tsx";
import { useSpan } from "../../state/span.ts";
import { useRuleLink } from "../../state/url-state.ts";
import { useZones, useZoneTitle } from "../../state/zones.ts";
import { formatCount } from "../../style/words.ts";

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
  const { length } = useSpan();
  const about = `events per minute over ${length}, usual: of the last 28 days`;
  return (
    <QueryPanel title="Rules that changed most" about={about} query={useOverview()}>
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
          <DataTable
            rows={shown}
            idOf={({ zoneId, ruleId }) => `${zoneId} ${ruleId}`}
            columns={[
              { head: "rule", cell: (rule) => <RuleCell rule={rule} hasZone={only === null} /> },
              { head: "usual → current", className: "lw-number", cell: RateCell },
              { head: "change", className: "lw-number", cell: wordChange },
              {
                head: "trend",
                className: "lw-wide",
                cell: ({ sparkline, ruleId }) => (
                  <Sparkline values={sparkline} label={`Events of rule ${ruleId} over the span`} />
                ),
              },
            ]}
          />
        );
      }}
    </QueryPanel>
  );
}

/** Which zone got worse, or which rule of the chosen zone: this span against the one before, when a person asks. */
export function Against() {
  const { only } = useZones();
  const { length } = useSpan();
  const [isAsked, setAsked] = useState(false);
  const changes = useChanges(only === null ? "zone" : "rule", only?.id ?? null, isAsked);
  const what = only === null ? "Zones" : "Rules";
  const title = `${what} against the ${length} before`;
  if (!isAsked)
    return (
      <Panel title={title}>
        <Button size="xs" variant="default" m={12} onClick={() => setAsked(true)}>
          What has changed?
        </Button>
      </Panel>
    );
  return (
    <QueryPanel title={title} query={changes}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty>No event in either span.</Empty>
        ) : (
          <DataTable
            rows={items}
            idOf={({ key }) => Object.values(key).join(" ")}
            columns={[
              { head: what.slice(0, -1).toLowerCase(), cell: GroupCell },
              { head: "before → now", className: "lw-number", cell: CountsCell },
              { head: "change", className: "lw-number", cell: ({ change }) => wordDifference(change) },
            ]}
          />
        )
      }
    </QueryPanel>
  );
}

type Change = Item<"compare.show">;

function GroupCell({ key: { zone, rule } }: Change) {
  const zoneName = useZoneTitle();
  return zone === undefined ? (
    <FilterValue field="rule" value={rule ?? ""}>
      <Payload prose text={rule ?? ""} />
    </FilterValue>
  ) : (
    zoneName(Number(zone))
  );
}

function CountsCell({ count, before }: Change) {
  return (
    <>
      <span className="lw-dim">{formatCount(before)} →</span> <b>{formatCount(count)}</b>
    </>
  );
}

function wordDifference(change: number): string {
  return `${change > 0 ? "+" : ""}${formatCount(change)}`;
}

function RuleCell({ rule, hasZone }: { readonly rule: Rule; readonly hasZone: boolean }) {
  const { zoneId, ruleId, title, openSpikeId, advice } = rule;
  const zoneName = useZoneTitle();
  const link = useRuleLink();
  return (
    <>
      <FilterValue field="rule" value={ruleId}>
        <Payload bold prose text={ruleId} />
      </FilterValue>{" "}
      <Link href={link(zoneId, ruleId)}>{title ?? "see its rule"}</Link>
      {hasZone ? <span className="lw-dim"> · {zoneName(zoneId)}</span> : null}
      {openSpikeId === null ? null : <span className="lw-fire"> ● spike</span>}
      {advice === null ? null : (
        <div className="lw-note" title={advice.text}>
          Advice <Ago at={advice.askedAt} />: <Payload prose text={shorten(advice.text)} />
        </div>
      )}
    </>
  );
}

function RateCell({ total, perMinute, usualPerMinute }: Rule) {
  return (
    <>
      <span className="lw-dim">{usualPerMinute === null ? "unknown" : formatDecimal(usualPerMinute)} →</span>{" "}
      <b>{formatDecimal(perMinute)}</b>
      <div className="lw-note">{formatCount(total)} events</div>
    </>
  );
}

function wordChange(rule: Rule): string {
  const times = timesOf(rule);
  return times === null ? "" : `${formatNumber(times)}x`;
}

/** The recommendation alone, where the platform marks it: what comes before repeats the counts. */
function shorten(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  const said = line.split("**Recommendation:**").at(-1)?.trim() ?? line;
  return said.length > ADVICE_CHARS ? `${said.slice(0, ADVICE_CHARS)} ...` : said;
}
