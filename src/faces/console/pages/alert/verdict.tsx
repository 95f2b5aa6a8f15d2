import { formatShare, many } from "#lib/format.ts";
import { countRequests, countThrough } from "#model/verdict.ts";
import { rowsOfOdds, sayBackground, sayLimits, sayMarksBefore, sayOdds } from "#model/words.ts";
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
  const { events, blocked, challenged, other, records } = counts;
  const usually = sayBackground(verdict.background);
  const say = (text: string) => <Payload key={text} prose text={text} />;
  return [
    ["For", verdict.for.map((text) => <div key={text}>{say(text)}</div>)],
    ["Against", say(verdict.against ?? "nothing")],
    [
      "Got through",
      <span key="through">
        <b>{formatCount(countThrough(counts))}</b> of {many(countRequests(counts), "request")} since{" "}
        <Moment at={since} />; {formatCount(blocked)} blocked, {formatCount(challenged)} challenged
        {other === 0 ? "" : `, of ${formatCount(other)} not known`}
      </span>,
    ],
    ...(usually === "" ? [] : [["Usually", usually] as const]),
    ["Who", say(verdict.who)],
    ...(sample === null ? [] : [["Sample", <Sample key="sample" of={sample} />] as const]),
    ["Next step", <b key="next">{say(verdict.nextStep)}</b>],
    [
      "Evidence",
      `${many(events, "event")}; ${many(records, "request")} with a record${missing.length === 0 ? "" : `; missing: ${missing.join(", ")}`}`,
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
function Numbers({ verdict }: { readonly verdict: Verdict }) {
  const limits = sayLimits(verdict);
  return (
    <>
      <DataTable
        rows={rowsOfOdds(verdict)}
        idOf={({ words }) => words}
        columns={[
          { head: "number, from 0 to 1", cell: ({ words }) => words },
          {
            head: "",
            className: "lw-number",
            cell: ({ value }) => (value === undefined ? "" : (value?.toFixed(2) ?? "not known")),
          },
          {
            head: `against or for ${verdict.likeliest.replace("-", " ")}`,
            cell: ({ adds }) => {
              const width = Math.min(Math.abs(adds) / WHOLE_BAR, 1) * 50;
              const left = adds < 0 ? 50 - width : 50;
              return (
                <div className={classes["bar"]} title={adds.toFixed(2)}>
                  <span style={{ left: `${left}%`, width: `${width}%` }} />
                </div>
              );
            },
          },
          { head: "", className: "lw-number", cell: ({ adds }) => adds.toFixed(2) },
        ]}
      />
      {limits.length === 0 ? null : (
        <div className="lw-note">
          <Payload prose text={limits.join(" ")} />
        </div>
      )}
    </>
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
        {
          head: "requests",
          className: "lw-number",
          cell: ({ counts }) => formatCount(countRequests(counts)),
        },
      ]}
    />
  );
}
