/** The verdict of an alert, and the marks of people. */

import { Kbd } from "@mantine/core";
import { formatShare, many } from "#lib/format.ts";
import { MARKS, type Mark } from "#model/kinds.ts";
import { countRequests, countThrough } from "#model/verdict.ts";
import {
  describeBackground,
  describeLimits,
  describeMarksBefore,
  formatOdds,
  rowsOfOdds,
} from "#model/words.ts";
import { type AlertDetail, useAlertAct } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { SubtleButton } from "../../components/buttons.tsx";
import { Moment, type Pair, Pairs } from "../../components/facts.tsx";
import { DataTable, Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { ProblemBox } from "../../components/states.tsx";
import { usePageKeys } from "../../state/keys.ts";
import { formatCount } from "../../style/words.ts";
import classes from "./alert.module.css";

type Verdict = AlertDetail["verdicts"][number];
/** Log odds that fill a bar. */
const WHOLE_BAR = 5;

/** Shows the verdict with its reasons and the next step, and lets a person mark the alert. */
export function VerdictPanel({ alert }: { readonly alert: AlertDetail }) {
  const { verdicts, markedBefore, mark, spikeId } = alert;
  const mayAct = useMay("act");
  const verdict = verdicts.at(-1);
  if (spikeId === null) return null;
  const before = describeMarksBefore(markedBefore).join(" ");
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
          odds {formatOdds(odds)} · judged <Moment at={judgedAt} />
        </>
      }
    >
      <Pairs of={[...toPairs(verdict), ...marked]} />
      <details>
        <summary>The numbers behind it</summary>
        <Numbers verdict={verdict} />
      </details>
      <details>
        <summary>{many(verdicts.length, "verdict")}</summary>
        <Verdicts verdicts={verdicts} />
      </details>
    </Panel>
  );
}

/** Reasons are sentences that may hold names from requests; the sample is text of an attacker. */
function toPairs({ counts, sample, missing, since, ...verdict }: Verdict): Pair[] {
  const { events, blocked, challenged, other, records } = counts;
  const usually = describeBackground(verdict.background);
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
  const limits = describeLimits(verdict);
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

function Verdicts({ verdicts }: Pick<AlertDetail, "verdicts">) {
  return (
    <DataTable
      rows={verdicts}
      idOf={({ look }) => look}
      columns={[
        { head: "time", cell: ({ look }) => look },
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

/** The key of each mark is its number. */
const MARK_KEYS = MARKS.map((mark, index) => [String(index + 1), mark] as const);

/** Says what the alert was. A later mark replaces an earlier one. */
function Marks({ alert: { id, mark } }: { readonly alert: AlertDetail }) {
  const send = useAlertAct(id);
  const say = (said: Mark) => send.mutate({ act: "mark", mark: said });
  usePageKeys(Object.fromEntries(MARK_KEYS.map(([key, said]) => [key, () => say(said)])));
  return (
    <>
      <div className="lw-bar" role="group" aria-label="What it was">
        {MARK_KEYS.map(([key, said]) => (
          <SubtleButton
            key={said}
            isPressed={said === mark}
            loading={send.isPending && send.variables.mark === said}
            onClick={() => say(said)}
            word={
              <>
                {said.replace("-", " ")} <Kbd ml={4}>{key}</Kbd>
              </>
            }
          />
        ))}
      </div>
      <div className="lw-note">
        {mark === "attack"
          ? "The hours of an attack leave the history of the rule, so that the next one is not taken for usual."
          : "Noise is no attack, without a reason."}
      </div>
      <ProblemBox thrown={send.error} />
    </>
  );
}
