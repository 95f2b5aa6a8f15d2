import { Checkbox, Drawer } from "@mantine/core";
import { useMemo, useState } from "react";
import { Link } from "wouter";
import { DAY_MS } from "#lib/units.ts";
import { REVIEW_FORMS, REVIEW_SAMPLES } from "#model/kinds.ts";
import {
  countChoice,
  countMargins,
  type ReviewChoice,
  type ReviewRow,
  summarizeReview,
} from "#model/review.ts";
import { writeReview } from "#model/review-forms.ts";
import { type Output, useOperation } from "../api/ask.ts";
import { CopyButton, SubtleButton } from "../components/buttons.tsx";
import { ActionWord, Moment } from "../components/facts.tsx";
import { DataTable, Panel, QueryPanel } from "../components/panel.tsx";
import { Payload } from "../components/payload.tsx";
import { Empty, QueryView } from "../components/states.tsx";
import { saveFile } from "../state/browser.ts";
import { useRuleLink, useUrlState } from "../state/url-state.ts";
import { useZones, zoneTitle } from "../state/zones.ts";
import { formatCount } from "../style/words.ts";
import classes from "./review.module.css";
import { SavedPlans } from "./review-plans.tsx";

type Plan = Output<"review.plan">;
type Rule = Plan["rules"][number];

/** The rules of a zone that can block. Every change is counted in the browser, over the counts that the plan brings along. */
export default function ReviewPage() {
  const { only, zones, choose } = useZones();
  const zone = only?.id ?? null;
  const plan = useOperation(
    "review.plan",
    { zone: zone ?? 0, table: true },
    { enabled: zone !== null, staleTime: Infinity },
  );
  return (
    <div className="lw-page">
      <h1 className="lw-unseen">Review</h1>
      {zone === null ? (
        <Panel title="From learning to blocking">
          <Empty>A plan is about one zone. Choose one:</Empty>
          <div className="lw-bar">
            {zones.map((one) => (
              <SubtleButton key={one.id} word={zoneTitle(one)} onClick={() => choose(String(one.id))} />
            ))}
          </div>
        </Panel>
      ) : (
        <QueryPanel title="From learning to blocking" query={plan} rows={10} asking="30 days of requests">
          {(found) => (found.zone === zone ? <Review key={zone} plan={found} /> : null)}
        </QueryPanel>
      )}
    </div>
  );
}

function Review({ plan }: { readonly plan: Plan }) {
  const { zone, learned, judged, olderDays, rules } = plan;
  const { choice, isOwn, toggle, drop, reset } = useChoice(plan);
  const [open, setOpen] = useState<string | null>(null);
  const counted = useMemo(() => countAll(plan, choice), [plan, choice]);
  const link = useRuleLink();
  const { totals } = counted;
  const summary = summarizeReview({ zone, olderDays, learnedDays: learned.days, totals, rules, choice });
  const number = (head: string, read: (rule: Rule) => string) => ({
    head,
    className: "lw-number",
    cell: read,
  });
  return (
    <>
      <div className={classes["said"]}>
        <p role="status" aria-live="polite">
          <Payload prose text={summary} />
        </p>
        <div className="lw-note">
          Planned from {learned.from} to {learned.to}; the figures are of {judged.from} to {judged.to}.
          Longwatch applies nothing. {isOwn ? <SubtleButton word="Back to the plan" onClick={reset} /> : null}
        </div>
      </div>
      <SavedPlans
        zone={zone}
        choice={choice}
        planned={plan.choice.block}
        count={(one) => countAll(plan, one).totals}
      />
      {rules.length === 0 ? (
        <Empty>No rule of this zone matched a request in the last 30 days.</Empty>
      ) : (
        <div className={classes["scroll"]} tabIndex={0} role="group" aria-label="Rules of the plan">
          <DataTable
            className={classes["rules"]}
            rows={rules}
            idOf={({ rule }) => rule}
            columns={[
              {
                head: "blocks",
                cell: ({ rule, plan: one }) => (
                  <Checkbox
                    aria-label={`${rule} blocks`}
                    disabled={one === "unplanned"}
                    checked={choice.block.includes(rule)}
                    onChange={() => toggle(rule)}
                  />
                ),
              },
              {
                head: "rule",
                cell: ({ rule, title }) => (
                  <>
                    <Link href={link(zone, rule)}>
                      <Payload prose text={rule} />
                    </Link>{" "}
                    <span className="lw-dim">{title ?? ""}</span>
                  </>
                ),
              },
              { head: "now", cell: ({ now }) => now },
              number("hostile", ({ hostile }) => formatCount(hostile)),
              number("visitors", ({ visitor }) => formatCount(visitor)),
              number("machines", ({ machine }) => formatCount(machine)),
              number("unknown", ({ unknown }) => formatCount(unknown)),
              number("hit a day", ({ rule }) => {
                const margin = counted.margins.get(rule);
                return `${formatCount(margin?.visitorsMedian ?? 0)} / ${formatCount(margin?.visitorsWorst ?? 0)}`;
              }),
              number("get through", ({ rule }) => formatCount(counted.margins.get(rule)?.hostile ?? 0)),
              {
                head: "plan",
                className: "lw-wide",
                cell: (rule) => <PlanOf rule={rule} choice={choice} drop={drop} />,
              },
              {
                head: <span className="lw-unseen">requests</span>,
                cell: ({ rule }) => (
                  <SubtleButton word="Requests" label={`Requests of ${rule}`} onClick={() => setOpen(rule)} />
                ),
              },
            ]}
          />
        </div>
      )}
      <div className="lw-hint">
        Hit a day: requests of visitors and unknown senders that only this rule would stop, on the median and
        the worst day. Get through: hostile requests that pass if it logs.
      </div>
      <Drawer
        opened={open !== null}
        onClose={() => setOpen(null)}
        position="right"
        size="xl"
        title={<Payload prose say="Requests of rule " text={open} />}
      >
        {open === null ? null : <Samples zone={zone} rule={open} choice={choice} />}
      </Drawer>
      <Forms plan={plan} choice={choice} counted={counted} />
    </>
  );
}

function PlanOf({
  rule: { rule, plan, why, exclusions },
  choice,
  drop,
}: {
  readonly rule: Rule;
  readonly choice: ReviewChoice;
  readonly drop: (rule: string, path: string) => void;
}) {
  const words = {
    block: "block",
    "block-after-exclusion": "block after an exclusion",
    log: "keep logging",
    undecided: "undecided",
    unplanned: "not planned",
  };
  const isBlocking = choice.block.includes(rule);
  return (
    <>
      {words[plan]}
      {why === "" ? null : <Payload prose say=": " text={why} />}
      {isBlocking
        ? exclusions.map((path) => (
            <div key={path}>
              <Checkbox
                label={<Payload say="not on " text={path} />}
                checked={choice.exclusions.some((one) => one.rule === rule && one.path === path)}
                onChange={() => drop(rule, path)}
              />
            </div>
          ))
        : null}
    </>
  );
}

/** The choice is in the address: the rules that differ from the plan, and the exclusions that were dropped. */
function useChoice({ choice: planned }: Plan) {
  const { params, change } = useUrlState();
  const changed = params.getAll("change");
  const dropped = params.getAll("drop");
  const key = JSON.stringify([changed, dropped]);
  const choice = useMemo((): ReviewChoice => {
    const [rules, paths] = JSON.parse(key) as [string[], string[]];
    const block = [
      ...planned.block.filter((rule) => !rules.includes(rule)),
      ...rules.filter((rule) => !planned.block.includes(rule)),
    ];
    const exclusions = planned.exclusions.filter(
      ({ rule, path }) => block.includes(rule) && !paths.includes(`${rule}@${path}`),
    );
    return { block, exclusions };
  }, [planned, key]);
  const flip = (list: readonly string[], one: string) =>
    list.includes(one) ? list.filter((other) => other !== one) : [...list, one];
  return {
    choice,
    isOwn: changed.length + dropped.length > 0,
    toggle: (rule: string) => change({ change: flip(changed, rule) }, { replace: true }),
    drop: (rule: string, path: string) =>
      change({ drop: flip(dropped, `${rule}@${path}`) }, { replace: true }),
    reset: () => change({ change: null, drop: null }),
  };
}

function countAll({ table, judged }: Plan, choice: ReviewChoice) {
  const days = { from: Date.parse(judged.from) / DAY_MS, to: Date.parse(judged.to) / DAY_MS + 1 };
  const { rules, paths, sets, rows } = table ?? { rules: [], paths: [], sets: [], rows: [] };
  const counts = { rules, paths, sets, rows: rows as unknown as readonly ReviewRow[] };
  const margins = countMargins(counts, choice, days);
  return {
    totals: countChoice(counts, choice, days),
    margins: new Map(rules.map((rule, index) => [rule, margins[index]])),
  };
}

function Samples({
  zone,
  rule,
  choice,
}: {
  readonly zone: number;
  readonly rule: string;
  readonly choice: ReviewChoice;
}) {
  const own = choice.exclusions.filter((one) => one.rule === rule);
  const exclude = own.map((one) => `${one.rule}@${one.path}`).join(",");
  const samples = useOperation(
    "review.samples",
    { zone, rule, block: choice.block.join(","), exclude: exclude === "" ? null : exclude },
    { staleTime: Infinity },
  );
  const words = {
    visitor: "Visitors and unknown senders that it would stop",
    attack: "Attacks that get through if it logs",
  };
  return (
    <QueryView query={samples} asking={`the requests of rule ${rule}`}>
      {({ items }) =>
        REVIEW_SAMPLES.map((kind) => {
          const of = items.filter((one) => one.kind === kind);
          return (
            <details key={kind} open>
              <summary>
                {words[kind]}: {of.length === 0 ? "none" : `the newest ${of.length}`}
              </summary>
              {of.map(({ at, ip, method, url, matched, action, class: whose }, index) => (
                <div key={`${index}`} className="lw-bar">
                  <Moment at={at} /> <span className="lw-dim">{whose}</span> <Payload text={ip} />{" "}
                  <ActionWord action={action} />
                  <Payload text={`${method} ${url}`} mark={matched ?? ""} />
                  <Payload say=" matched " text={matched} />
                </div>
              ))}
            </details>
          );
        })
      }
    </QueryView>
  );
}

function Forms({
  plan,
  choice,
  counted,
}: {
  readonly plan: Plan;
  readonly choice: ReviewChoice;
  readonly counted: ReturnType<typeof countAll>;
}) {
  const { zone, rules } = plan;
  const written = rules
    .filter((one) => one.plan !== "unplanned")
    .map(({ rule, now, plan: planned }) => {
      const {
        visitorsMedian = 0,
        visitorsWorst = 0,
        hostile: attacksThrough = 0,
      } = counted.margins.get(rule) ?? {};
      return { rule, now, plan: planned, visitorsMedian, visitorsWorst, attacksThrough };
    });
  const names = { terraform: "tf", curl: "sh", csv: "csv", json: "json" };
  return REVIEW_FORMS.map((form) => {
    const text = writeReview(form, { zone, ...choice, rules: written });
    return (
      <details key={form}>
        <summary>{form}</summary>
        <div className="lw-bar">
          <CopyButton text={() => text}>Copy</CopyButton>
          <SubtleButton
            icon="download"
            word="Save"
            onClick={() => saveFile(`review-${zone}.${names[form]}`, new Blob([text]))}
          />
        </div>
        <pre className="lw-code" tabIndex={0} aria-label={form}>
          {text}
        </pre>
      </details>
    );
  });
}
