/** Runs and their progress. */

import { Checkbox, Progress, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useRef, useState } from "react";
import { type CoverageRun, useCoverageRuns, useStartRun } from "#faces/console/api/queries.ts";
import { useMay } from "#faces/console/api/session.ts";
import { Ago, Moment, Rows } from "#faces/console/components/facts.tsx";
import { PopoverForm, type Toggled, ToggledForm, useFields } from "#faces/console/components/forms.tsx";
import { QueryPanel } from "#faces/console/components/panel.tsx";
import { Payload } from "#faces/console/components/payload.tsx";
import { useSpan } from "#faces/console/state/span.ts";
import { useServerTime, useStatus, useZones, useZoneTitle, zoneTitle } from "#faces/console/state/zones.ts";
import { Icon } from "#faces/console/style/icons.tsx";
import { formatCount } from "#faces/console/style/words.ts";
import { formatDuration, many, showIso } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { RUN_KINDS, type RunKind } from "#model/kinds.ts";
import classes from "./coverage.module.css";
import { findRunFaults, type RunFaults } from "./find-run-faults.ts";

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

const ABOUT: Readonly<Record<RunKind, string>> = {
  verify: "Compares the stored events with the platform and with themselves. It changes nothing.",
  backfill: "Reads the span again from the platform, at most the last 72 hours, and stores what is missing.",
  "verify-archive":
    "Reads every file of the archive days in the span, and compares it with its hash, its statement and the counts.",
};
const RUN_WORDS: Readonly<Record<RunKind, string>> = {
  verify: "Verify",
  backfill: "Read again",
  "verify-archive": "Verify archive",
};
const FIELDS = ["zone", "from", "to"] as const;
const NO_FAULTS: RunFaults = { zone: null, from: null, to: null };

/** The span of the page is filled in. What was typed stays if it is refused, here or by the service. */
function StartForm({ isOpen, onToggle }: Toggled) {
  const { all, zones } = useZones();
  const span = useSpan();
  const start = useStartRun();
  const serverTime = useServerTime();
  // The refusal was about what was typed before.
  const withdraw = () => start.error !== null && start.reset();
  const { values, text, choice, tick, isMistaken } = useFields(
    () => ({
      kind: "verify" as RunKind,
      zone: String(zones[0]?.id ?? ""),
      from: showIso(Math.floor(span.fromMs / HOUR_MS) * HOUR_MS),
      to: showIso(Math.min(span.toMs, serverTime() - 1_000)),
      ids: false,
    }),
    start.error,
    withdraw,
  );
  // Nobody is corrected while typing for the first time. After the first try, each change is judged at once.
  const [isTried, setTried] = useState(false);
  const fields = {
    zone: useRef<HTMLInputElement>(null),
    from: useRef<HTMLInputElement>(null),
    to: useRef<HTMLInputElement>(null),
  };
  const { kind, zone, ids } = values;
  const archived = useStatus().data?.archive.find(({ zoneId }) => String(zoneId) === zone) ?? null;
  const firstHour = all.find(({ id }) => String(id) === zone)?.firstHour;
  const wanted = { kind, from: values.from.trim(), to: values.to.trim() };
  const judge = () =>
    findRunFaults(wanted, {
      nowMs: serverTime(),
      firstHourMs: firstHour === undefined ? null : Date.parse(firstHour),
      archived,
    });
  const faults = isTried ? judge() : NO_FAULTS;
  const bind = (name: keyof RunFaults) => ({
    ref: fields[name],
    ...(faults[name] === null ? {} : { error: faults[name] }),
  });
  const submit = () => {
    setTried(true);
    withdraw();
    const found = judge();
    const wrong = FIELDS.find((field) => found[field] !== null);
    if (wrong !== undefined) return fields[wrong].current?.focus();
    start.mutate(
      { ...wanted, zone: Number(zone), ids: kind === "verify" && ids },
      { onSuccess: () => onToggle(false) },
    );
  };
  return (
    <PopoverForm
      word="Start"
      button={{ leftSection: <Icon name="play" size={12} /> }}
      position="bottom-end"
      width={320}
      isOpen={isOpen}
      onToggle={onToggle}
      onSubmit={submit}
      problem={isMistaken ? null : start.error}
      submit={{ word: RUN_WORDS[kind], loading: start.isPending, disabled: zone === "" }}
    >
      <SegmentedControl
        fullWidth
        aria-label="What is started"
        data={RUN_KINDS.map((value) => ({ value, label: RUN_WORDS[value] }))}
        {...choice("kind")}
      />
      <div className="lw-note">{ABOUT[kind]}</div>
      <Select
        label="Zone"
        data={all.map((one) => ({ value: String(one.id), label: zoneTitle(one) }))}
        {...choice("zone")}
        {...bind("zone")}
      />
      <TextInput
        label="From"
        description="UTC, such as 2026-11-21T14:00:00Z"
        required
        {...text("from")}
        {...bind("from")}
      />
      <TextInput label="To" required {...text("to")} {...bind("to")} />
      {kind === "verify" ? (
        <Checkbox label="Also compare three hours event by event" {...tick("ids")} />
      ) : null}
    </PopoverForm>
  );
}
