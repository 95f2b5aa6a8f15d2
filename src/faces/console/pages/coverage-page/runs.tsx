import { formatDuration, many } from "#lib/format.ts";
import { type CoverageRun, useCoverageRuns } from "../../api/coverage.ts";
import { useMay } from "../../api/session.ts";
import { Ago, Moment } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, QueryView } from "../../components/states.tsx";
import { Icon } from "../../look/icons.tsx";
import { formatCount } from "../../look/words.ts";
import { useZones, useZoneTitle } from "../../state/zones.ts";
import classes from "./coverage.module.css";
import { RunProgress } from "./run-progress.tsx";
import { RUN_WORDS, StartRun } from "./start-run.tsx";

/** Verifications and backfills that people started, with their progress and result. */
export function Runs() {
  const runs = useCoverageRuns();
  const mayAct = useMay("act");
  const { zones, chosen } = useZones();
  const ids = new Set(zones.map(({ id }) => id));
  return (
    <Panel
      title="Verify and read again"
      about="started by people; they go on when this page is closed"
      actions={mayAct ? <StartRun /> : undefined}
      flush
    >
      <QueryView query={runs} rows={2} asking="verifications and backfills">
        {({ items }) => {
          const shown = items.filter(({ zoneId }) => chosen === "" || ids.has(zoneId));
          if (shown.length === 0)
            return (
              <Empty>
                {mayAct
                  ? "Nobody has started a verification or a backfill here. Start one for a span above."
                  : "Nobody has started a verification or a backfill here."}
              </Empty>
            );
          return (
            <ul className="lw-rows">
              {shown.map((run) => (
                <RunRow key={run.id} run={run} />
              ))}
            </ul>
          );
        }}
      </QueryView>
    </Panel>
  );
}

function RunRow({ run }: { readonly run: CoverageRun }) {
  const { kind, zoneId, from, to, problem, requestedBy, requestedAt, endedAt } = run;
  const zoneName = useZoneTitle();
  const isOpen = endedAt === null;
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
      {isOpen ? <RunProgress run={run} /> : null}
      {problem === null ? null : (
        <div className={`${classes["wide"]} lw-warn`}>
          {isOpen ? "The last start failed and is repeated: " : ""}
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
      <b className={classes["good"]}>
        <Icon name="check" size={14} /> {formatCount(archive.files)} files whole
      </b>
    ) : (
      <b className="lw-fire">{many(archive.problemCount, "problem")}</b>
    );
  if (checks === null) return <span className="lw-dim">{state}</span>;
  const differences = checks.reduce((sum, { differenceCount }) => sum + differenceCount, 0);
  const failed = checks.filter(({ failure }) => failure !== null).length;
  if (differences + failed === 0)
    return (
      <b className={classes["good"]}>
        <Icon name="check" size={14} /> no difference
      </b>
    );
  return (
    <b className="lw-fire">
      {many(differences, "difference")}
      {failed === 0 ? "" : `, ${failed} checks failed`}
    </b>
  );
}

function Differences({ run: { checks, backfill, archive } }: { readonly run: CoverageRun }) {
  if (backfill !== null && backfill.expired.length > 0)
    return (
      <div className={`${classes["wide"]} lw-warn`}>
        The platform forgot {backfill.expired.length} parts of the span before they were read.
      </div>
    );
  if (archive !== null && archive.problemCount > 0)
    return (
      <details className={classes["wide"]}>
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
    <details className={classes["wide"]}>
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
              {ruleId === null ? null : (
                <>
                  {" "}
                  rule <Payload prose text={ruleId} />
                </>
              )}
              : {sides[0]} {formatCount(expected)}, {sides[1]} {formatCount(found)}{" "}
              {detail === null ? null : <Payload prose text={detail} />}
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
