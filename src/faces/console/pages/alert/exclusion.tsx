import { useState } from "react";
import { formatShare, many } from "#lib/format.ts";
import type { ExclusionClause } from "#model/advice.ts";
import { type Output, useOperation } from "../../api/ask.ts";
import type { AlertDetail } from "../../api/queries.ts";
import { CopyButton, SubtleButton } from "../../components/buttons.tsx";
import { DataTable, Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { QueryView } from "../../components/states.tsx";
import { formatCount } from "../../style/words.ts";

/** The exclusion that is proposed for a misfire that lasts. Longwatch applies none. */
export function ExclusionPanel({ alert: { verdicts, zoneId } }: { readonly alert: AlertDetail }) {
  const proposal = verdicts.at(-1)?.exclusion ?? null;
  if (proposal === null || zoneId === null) return null;
  const { form, covered, events, together, clauses, refusal } = proposal;
  const others = together.map(({ ruleId, share }) => `${ruleId} (${formatShare(share)})`).join(", ");
  return (
    <Panel
      title={form === "narrow" ? "Proposed exclusion" : "No exclusion is proposed"}
      about={`${form}, covers ${formatShare(covered)} of ${many(events, "event")}; Longwatch does not apply it`}
    >
      <Payload prose text={refusal} />
      {clauses.map((clause) => (
        <Clause key={JSON.stringify(clause)} zone={zoneId} clause={clause} />
      ))}
      {others === "" ? null : (
        <div className="lw-note">
          <Payload prose say="Other rules match the same requests: " text={others} />
        </div>
      )}
    </Panel>
  );
}

/** The replay is asked for by a click, because it reads everything that is kept. */
export function Clause({
  zone,
  clause,
  isHidden = false,
}: {
  readonly zone: number;
  readonly clause: ExclusionClause;
  /** Whether the key sees another text than the one that matches. */
  readonly isHidden?: boolean;
}) {
  const { ruleIds, template, method, parameter } = clause;
  const [rule = ""] = ruleIds;
  const [isAsked, setAsked] = useState(false);
  const matched = parameter === null ? "" : `${parameter} of `;
  const input = { zone, rule, path: template, method, parameter };
  const tried = useOperation("exclusion.try", input, { enabled: isAsked, staleTime: Infinity });
  return (
    <>
      <div className="lw-bar">
        <Payload
          text={`rule ${rule} for ${matched}${method === null ? "" : `${method} `}${template ?? "every path"}`}
        />
        {isAsked || isHidden ? null : <SubtleButton word="Replay 30 days" onClick={() => setAsked(true)} />}
      </div>
      {isAsked ? (
        <QueryView query={tried} asking="a replay of 30 days">
          {(found) => <Replay of={found} />}
        </QueryView>
      ) : null}
    </>
  );
}

const COUNTS = ["events", "addresses", "days", "suspicious"] as const;

/** The wide forms stand beside it, so that a reader sees why not. */
function Replay({ of }: { readonly of: Output<"exclusion.try"> }) {
  const { silenced, ruleInZone, everythingOnPath, isExact, samples, forms, hiddenForms } = of;
  const rows = [
    { what: "this exclusion", ...silenced },
    { what: "the rule in the whole zone", ...ruleInZone },
    ...(everythingOnPath === null ? [] : [{ what: "every rule on the path", ...everythingOnPath }]),
  ];
  const counts = COUNTS.map((name) => ({
    head: name,
    className: "lw-number",
    cell: (row: (typeof rows)[number]) => formatCount(row[name]),
  }));
  return (
    <>
      <DataTable
        rows={rows}
        idOf={({ what }) => what}
        columns={[{ head: "would have silenced", cell: ({ what }) => what }, ...counts]}
      />
      <div className="lw-note">
        {isExact ? "" : "Numbers of events are scaled from a sample. "}A suspicious event is a reason to look,
        not a proof.
      </div>
      {samples.map(({ isSuspicious, method, url, matched }, index) => (
        <div key={`${index}`}>
          <span className={isSuspicious ? "lw-warn" : "lw-dim"}>
            {isSuspicious ? "suspicious" : "ordinary"}
          </span>{" "}
          <Payload text={`${method} ${url}`} mark={matched ?? ""} />
          <Payload say=" matched " text={matched} />
        </div>
      ))}
      {forms.map(({ tool, reach, text }) => (
        <details key={`${tool} ${reach}`}>
          <summary>
            {tool}, silences the {reach}
          </summary>
          <CopyButton text={() => text}>Copy</CopyButton>
          <pre className="lw-code" tabIndex={0} aria-label={`${tool}, ${reach}`}>
            {text}
          </pre>
        </details>
      ))}
      {hiddenForms === 0 ? null : (
        <div className="lw-note">
          {many(hiddenForms, "form")} not shown: an address is in them, which your key does not see.
        </div>
      )}
    </>
  );
}
