/** Runs and their progress. */

import { Progress } from "@mantine/core";
import { formatDuration, many } from "#lib/format.ts";
import { type CoverageRun, useCoverageRuns } from "../../api/queries.ts";
import { useMay } from "../../api/session.ts";
import { Ago, Moment, Rows } from "../../components/facts.tsx";
import { ToggledForm } from "../../components/forms.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { useZones, useZoneTitle } from "../../state/zones.ts";
import { Icon } from "../../style/icons.tsx";
import { formatCount } from "../../style/words.ts";
import classes from "./coverage.module.css";
import { RUN_WORDS, StartForm } from "./start-run.tsx";

/** Verifications and backfills that people started, with their progress and result. */
export function Runs() {
  const mayAct = useMay("act");
  const { isShown } = useZones();
  const none = "Nobody has started a verification or a backfill here.";
  return (
    <QueryPanel
      title="Verify and read again"
      about="started by people; they go on when this page is closed"
      actions={mayAct ? <ToggledForm form={StartForm} /> : undefined}
      query={useCoverageRuns()}
      asking="verifications and backfills"
    >
      {({ items }) => (
        <Rows
          of={items.filter(({ zoneId }) => isShown(zoneId))}
          none={mayAct ? `${none} Start one for a span above.` : none}
        >
          {(run) => <RunRow key={run.id} run={run} />}
        </Rows>
      )}
    </QueryPanel>
  );
}

function RunRow({ run }: { readonly run: CoverageRun }) {
  const { kind, zoneId, from, to, problem, requestedBy, requestedAt, endedAt } = run;
  const zoneName = useZoneTitle();
  return (
    <li className={classes["run"]} data-run={run.id}>
      <div>
        <b>{RUN_WORDS[kind]}</b> {zoneName(zoneId)}, <Moment at={from} /> to <Moment at={to} />
        <div className="lw-note">
          <Ago at={requestedAt} /> by <Payload prose text={requestedBy} />
          {endedAt === null ? "" : `, took ${formatDuration(Date.parse(endedAt) - Date.parse(requestedAt))}`}
        </div>
      </div>
      <Outcome run={run} />
      {endedAt === null ? (
        <RunProgress run={run} />
      ) : (
        <div className="lw-across lw-warn">
          <Payload prose text={problem} />
        </div>
      )}
      <Differences run={run} />
    </li>
  );
}

function Outcome({ run: { state, backfill, checks, archive } }: { readonly run: CoverageRun }) {
  if (state === "failed") return <b className="lw-warn">failed</b>;
  if (backfill !== null) return <b>{formatCount(backfill.newEvents)} new events</b>;
  if (archive !== null)
    return archive.problemCount === 0 ? (
      <Good>{formatCount(archive.files)} files whole</Good>
    ) : (
      <b className="lw-fire">{many(archive.problemCount, "problem")}</b>
    );
  if (checks === null) return <span className="lw-dim">{state}</span>;
  const differences = checks.reduce((sum, { differenceCount }) => sum + differenceCount, 0);
  const failed = checks.filter(({ failure }) => failure !== null).length;
  if (differences + failed === 0) return <Good>no difference</Good>;
  return (
    <b className="lw-fire">
      {many(differences, "difference")}
      {failed === 0 ? "" : `, ${failed} checks failed`}
    </b>
  );
}

function Good({ children }: { readonly children: React.ReactNode }) {
  return (
    <b className="lw-good">
      <Icon name="check" size={14} /> {children}
    </b>
  );
}

function Differences({ run: { checks, backfill, archive } }: { readonly run: CoverageRun }) {
  if (backfill !== null && backfill.expired.length > 0)
    return (
      <div className="lw-across lw-warn">
        The platform forgot {backfill.expired.length} parts of the span before they were read.
      </div>
    );
  if (archive !== null && archive.problemCount > 0)
    return (
      <details className="lw-across">
        <summary className="lw-note">What is wrong</summary>
        {archive.problems.map(({ path, problem }) => (
          <div key={`${path} ${problem}`} className={classes["check"]}>
            <Payload text={path} /> <Payload prose text={problem} />
          </div>
        ))}
      </details>
    );
  if (checks === null) return null;
  return (
    <details className="lw-across">
      <summary className="lw-note">{checks.length} checks</summary>
      {checks.map(({ name, sides, compared, verdict, failure, differenceCount, differences, notes }) => (
        <div key={name} className={classes["check"]}>
          <b>{name}</b> <span className="lw-dim">{compared}:</span>{" "}
          {failure === null ? (
            (verdict ?? (differenceCount === 0 ? "no difference" : `${formatCount(differenceCount)} differ`))
          ) : (
            <span className="lw-warn">
              failed: <Payload prose text={failure} />
            </span>
          )}
          {differences.map(({ at, ruleId, expected, found, detail }, index) => (
            <div key={`${at} ${index}`} className="lw-note">
              <Moment at={at} />
              <Payload say=" rule " prose text={ruleId} />: {sides[0]} {formatCount(expected)}, {sides[1]}{" "}
              {formatCount(found)} <Payload prose text={detail} />
            </div>
          ))}
          {notes.map((note) => (
            <div key={note} className="lw-note">
              <Payload prose text={note} />
            </div>
          ))}
        </div>
      ))}
    </details>
  );
}

interface Props {
  readonly run: CoverageRun;
  /** Work of the run; shown before the percentage. */
  readonly doing?: string;
}

/** How far a run without an end has come, and why its last start failed. */
export function RunProgress({ run: { state, percent, step, problem }, doing }: Props) {
  return (
    <>
      <div className={classes["progress"]}>
        <Progress value={percent} aria-label={`${percent} percent done`} />
        <span className="lw-note" role="status">
          {state === "waiting"
            ? "waits for its turn"
            : `${doing === undefined ? "" : `${doing}, `}${percent} %`}
          <Payload say=" · " prose text={step} />
        </span>
      </div>
      <div className="lw-across lw-warn">
        <Payload say="The last start failed and is repeated: " prose text={problem} />
      </div>
    </>
  );
}
