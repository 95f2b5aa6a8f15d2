import { formatShare, many } from "#lib/format.ts";
import { VERDICT_FEATURES } from "#model/kinds.ts";
import { countThrough } from "#model/verdict.ts";
import { FEATURE_WORDS, sayMarksBefore, sayOdds } from "#model/verdict-words.ts";
import type { AlertDetail } from "../../api/alert.ts";
import { useMay } from "../../api/session.ts";
import { Moment } from "../../components/ago.tsx";
import { DataTable } from "../../components/data-table.tsx";
import { type Pair, Pairs } from "../../components/pairs.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { formatCount } from "../../look/words.ts";
import classes from "./alert.module.css";
import { Marks } from "./mark.tsx";

type Verdict = AlertDetail["verdicts"][number];
/** Log odds that fill a bar. */
const WHOLE_BAR = 5;

/** Shows the verdict with its reasons and the next step, and lets a person mark the alert. */
export function VerdictPanel({ alert }: { readonly alert: AlertDetail }) {
  const { verdicts, markedBefore, mark, spikeId } = alert;
  const mayAct = useMay("act");
  const verdict = verdicts.at(-1);
  if (spikeId === null) return null;
  const before = sayMarksBefore(markedBefore).join(" ");
  const marked: readonly Pair[] = [
    ...(before === "" ? [] : [["Before", before] as const]),
    ["Mark as", mayAct ? <Marks alert={alert} /> : (mark ?? "not marked")],
  ];
  if (verdict === undefined)
    return (
      <Panel title="No verdict" about="not judged yet, or of a kind that is not judged">
        <Pairs of={marked} />
      </Panel>
    );
  const { title, odds, judgedAt } = verdict;
  return (
    <Panel
      title={<Payload prose text={title} />}
      about={
        <>
          odds {sayOdds(odds)} · judged <Moment at={judgedAt} />
        </>
      }
    >
      <Pairs of={[...toPairs(verdict), ...marked]} />
      <details>
        <summary>The numbers behind it</summary>
        <Numbers verdict={verdict} />
      </details>
      <details>
        <summary>{many(verdicts.length, "look")}</summary>
        <Looks verdicts={verdicts} />
      </details>
    </Panel>
  );
}

/** Reasons are sentences that may hold names from requests; the sample is text of an attacker. */
function toPairs({ counts, sample, missing, since, ...verdict }: Verdict): Pair[] {
  const { events, blocked, challenged, records } = counts;
  const say = (text: string) => <Payload key={text} prose text={text} />;
  return [
    ["For", verdict.for.map((text) => <div key={text}>{say(text)}</div>)],
    ["Against", say(verdict.against ?? "nothing")],
    [
      "Got through",
      <span key="through">
        <b>{formatCount(countThrough(counts))}</b> of {many(events, "event")} since <Moment at={since} />;{" "}
        {formatCount(blocked)} blocked, {formatCount(challenged)} challenged
      </span>,
    ],
    ["Who", say(verdict.who)],
    ...(sample === null ? [] : [["Sample", <Sample key="sample" of={sample} />] as const]),
    ["Next step", <b key="next">{say(verdict.nextStep)}</b>],
    [
      "Evidence",
      `${many(records, "raw record")} read${missing.length === 0 ? "" : `; missing: ${missing.join(", ")}`}`,
    ],
  ];
}

interface SampleProps {
  readonly of: NonNullable<Verdict["sample"]>;
}

function Sample({ of: { method, url, ip, ruleId, action, parameter, matched } }: SampleProps) {
  return (
    <>
      <Payload text={`${method} ${url}`.trim()} mark={matched ?? ""} />
      <div className="lw-note">
        {action} · rule <Payload text={ruleId} /> · from <Payload text={ip} none="an unknown address" />
        <Payload say=" · matched " text={matched} mark={matched ?? ""} />
        <Payload say=" in " text={parameter} />
      </div>
    </>
  );
}

/** Each number with what it adds to the likeliest class: to the right for it, to the left against it. */
function Numbers({ verdict: { features, likeliest } }: { readonly verdict: Verdict }) {
  return (
    <DataTable
      rows={VERDICT_FEATURES.toSorted((one, other) => features[other].adds - features[one].adds)}
      idOf={(name) => name}
      columns={[
        { head: "number, from 0 to 1", cell: (name) => FEATURE_WORDS[name] },
        { head: "", className: "lw-number", cell: (name) => features[name].value?.toFixed(2) ?? "not known" },
        {
          head: `against or for ${likeliest.replace("-", " ")}`,
          cell: (name) => {
            const { adds } = features[name];
            const width = Math.min(Math.abs(adds) / WHOLE_BAR, 1) * 50;
            const left = adds < 0 ? 50 - width : 50;
            return (
              <div className={classes["bar"]} title={adds.toFixed(2)}>
                <span style={{ left: `${left}%`, width: `${width}%` }} />
              </div>
            );
          },
        },
        { head: "", className: "lw-number", cell: (name) => features[name].adds.toFixed(2) },
      ]}
    />
  );
}

function Looks({ verdicts }: Pick<AlertDetail, "verdicts">) {
  return (
    <DataTable
      rows={verdicts}
      idOf={({ look }) => look}
      columns={[
        { head: "look", cell: ({ look }) => look },
        { head: "judged", cell: ({ judgedAt }) => <Moment at={judgedAt} /> },
        { head: "verdict", cell: ({ title }) => <Payload prose text={title} /> },
        { head: "odds", className: "lw-number", cell: ({ odds }) => formatShare(odds) },
        { head: "events", className: "lw-number", cell: ({ counts }) => formatCount(counts.events) },
      ]}
    />
  );
}
