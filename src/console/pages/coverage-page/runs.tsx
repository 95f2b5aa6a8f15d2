import { Button, Checkbox, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { formatDuration } from "../../../lib/format.ts";
import { HOUR_MS } from "../../../lib/units.ts";
import { type CoverageRun, useCoverageRuns, useStartRun } from "../../api/coverage.ts";
import { useMay } from "../../api/session.ts";
import { Ago, Moment } from "../../components/ago.tsx";
import { mistakeOf } from "../../components/mistake-of.ts";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { PopoverForm } from "../../components/popover-form.tsx";
import { Empty, ProblemBox, QueryView } from "../../components/states.tsx";
import { Icon } from "../../look/icons.tsx";
import { formatCount } from "../../look/words.ts";
import { toUrlTime, useSpan } from "../../state/span.ts";
import { useZones, useZoneTitle, zoneTitle } from "../../state/zones.ts";
import classes from "./coverage.module.css";
import { RunProgress } from "./run-progress.tsx";

const ABOUT = {
  verify: "Compares the stored events with the platform and with themselves. It changes nothing.",
  backfill: "Reads the span again from the platform, at most the last 72 hours, and stores what is missing.",
  "verify-archive":
    "Reads every file of the archive days in the span, and compares it with its hash, its statement and the counts.",
} as const;
type Kind = keyof typeof ABOUT;
const WORDS: Readonly<Record<Kind, string>> = {
  verify: "Verify",
  backfill: "Read again",
  "verify-archive": "Verify archive",
};

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
        <b>{WORDS[kind]}</b> {zoneName(zoneId)}, <Moment at={from} /> to <Moment at={to} />
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
      <b className="lw-fire">
        {formatCount(archive.problemCount)} {archive.problemCount === 1 ? "problem" : "problems"}
      </b>
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
      {formatCount(differences)} {differences === 1 ? "difference" : "differences"}
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

/** The span of the page is filled in. What was typed stays if the service refuses it. */
function StartRun() {
  const [isOpen, setOpen] = useState(false);
  // A form that is opened again begins with the span of the page.
  return <StartForm key={String(isOpen)} isOpen={isOpen} onToggle={setOpen} />;
}

interface FormProps {
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
}

function StartForm({ isOpen, onToggle }: FormProps) {
  const { all, zones } = useZones();
  const span = useSpan();
  const start = useStartRun();
  const [kind, setKind] = useState<Kind>("verify");
  const [zone, setZone] = useState(String(zones[0]?.id ?? ""));
  const [from, setFrom] = useState(() => toUrlTime(Math.floor(span.fromMs / HOUR_MS) * HOUR_MS));
  const [to, setTo] = useState(() => toUrlTime(Math.min(span.toMs, Date.now() - 1_000)));
  const [ids, setIds] = useState(false);
  const hasField = ["from", "to", "zone"].some((field) => mistakeOf(start.error, field) !== null);
  return (
    <PopoverForm
      word="Start"
      button={{ leftSection: <Icon name="play" size={12} /> }}
      position="bottom-end"
      width={320}
      isOpen={isOpen}
      onToggle={onToggle}
      onSubmit={() =>
        start.mutate(
          { kind, zone: Number(zone), from: from.trim(), to: to.trim(), ids: kind === "verify" && ids },
          { onSuccess: () => onToggle(false) },
        )
      }
    >
      <SegmentedControl
        size="xs"
        fullWidth
        aria-label="What is started"
        data={Object.entries(WORDS).map(([value, label]) => ({ value: value as Kind, label }))}
        value={kind}
        onChange={(value) => setKind(value)}
      />
      <div className="lw-note">{ABOUT[kind]}</div>
      <Select
        size="xs"
        label="Zone"
        allowDeselect={false}
        comboboxProps={{ withinPortal: false }}
        data={all.map((one) => ({ value: String(one.id), label: zoneTitle(one) }))}
        value={zone}
        error={mistakeOf(start.error, "zone")}
        onChange={(value) => setZone(value ?? "")}
      />
      <TextInput
        size="xs"
        label="From"
        description="UTC, such as 2026-11-21T14:00:00Z"
        required
        value={from}
        error={mistakeOf(start.error, "from")}
        onChange={(event) => setFrom(event.currentTarget.value)}
      />
      <TextInput
        size="xs"
        label="To"
        required
        value={to}
        error={mistakeOf(start.error, "to")}
        onChange={(event) => setTo(event.currentTarget.value)}
      />
      {kind === "verify" ? (
        <Checkbox
          size="xs"
          label="Also compare three hours event by event"
          checked={ids}
          onChange={(event) => setIds(event.currentTarget.checked)}
        />
      ) : null}
      {start.error === null || hasField ? null : <ProblemBox thrown={start.error} />}
      <Button type="submit" size="xs" loading={start.isPending} disabled={zone === ""}>
        {WORDS[kind]}
      </Button>
    </PopoverForm>
  );
}
