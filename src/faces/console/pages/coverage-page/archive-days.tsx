import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { useOperation } from "../../api/ask.ts";
import {
  type ArchiveDay,
  type CoverageRun,
  SELDOM,
  useCoverageRuns,
  useStartRun,
} from "../../api/queries.ts";
import { ActButton, SubtleButton } from "../../components/buttons.tsx";
import { Ago, Moment, Pairs, Rows } from "../../components/facts.tsx";
import { QueryPanel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, Partial, ProblemBox } from "../../components/states.tsx";
import { useSpan } from "../../state/span.ts";
import { useStatus, useZones, useZoneTitle } from "../../state/zones.ts";
import { formatBytes, formatCount } from "../../style/words.ts";
import { RunProgress } from "./runs.tsx";

const MOST_SHOWN = 62;
const LONGEST_MS = 799 * DAY_MS;

/** The days of the span that are in the archive, with their files and last checks. */
export function ArchiveDays() {
  const { fromMs, toMs, narrow } = useSpan();
  const { zones, only } = useZones();
  const isShown = ({ zoneId }: { readonly zoneId: number }) => zones.some(({ id }) => id === zoneId);
  const startMs = Math.max(fromMs, toMs - LONGEST_MS);
  const span = { from: startMs - (startMs % DAY_MS), to: Math.ceil(toMs / DAY_MS) * DAY_MS };
  const zone = only?.id ?? null;
  // Read again when another check has ended.
  const lastCheck = useCoverageRuns().data?.items.find(({ archive }) => archive !== null)?.id ?? null;
  const days = useOperation(
    "archive.days",
    { zone, ...span },
    { ...SELDOM, queryKey: ["archive.days", zone, span, lastCheck] },
  );
  const kept = (useStatus().data?.archive ?? []).filter(isShown);
  const [first = ""] = kept.map(({ firstDay }) => firstDay).sort();
  const [last = ""] = kept
    .map(({ lastDay }) => lastDay)
    .sort()
    .reverse();
  const bytes = kept.reduce((sum, { eventBytes, recordBytes }) => sum + eventBytes + recordBytes, 0);
  return (
    <QueryPanel
      title="Archive"
      about={`UTC days that can no longer change${
        kept.length === 0 ? "" : `, ${first} to ${last}, ${formatBytes(bytes)}`
      }`}
      query={days}
    >
      {({ items }) => {
        const found = items.filter(isShown).toReversed();
        if (kept.length === 0)
          return <Empty>No day is archived yet. The command longwatch archive status says why.</Empty>;
        if (found.length === 0) {
          const showAll = () => narrow(Date.parse(first), Date.parse(last) + DAY_MS);
          const action = <SubtleButton word="Show the archive days" onClick={showAll} />;
          return <Empty action={action}>No day of the span is archived.</Empty>;
        }
        return (
          <>
            {found.length > MOST_SHOWN ? (
              <Partial>
                The newest {MOST_SHOWN} of {formatCount(found.length)}. Narrow the span to see the others.
              </Partial>
            ) : null}
            <Rows of={found.slice(0, MOST_SHOWN)}>
              {(day) => <DayRow key={`${day.zoneId} ${day.day}`} day={day} />}
            </Rows>
          </>
        );
      }}
    </QueryPanel>
  );
}

function DayRow({ day: { day, zoneId, isInPostgres, files } }: { readonly day: ArchiveDay }) {
  const zoneName = useZoneTitle();
  const run = useLastCheck(zoneId, day);
  const start = useStartRun();
  const events = files.find(({ kind }) => kind === "events")?.rows ?? 0;
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const damaged = files.filter(({ damage }) => damage !== null);
  const oldest = Math.min(...files.map(({ checkedAt }) => Date.parse(checkedAt)));
  return (
    <li data-archive-day={`${zoneId}/${day}`}>
      <div>
        <b>{day}</b> {zoneName(zoneId)}
        <div className="lw-note">
          {formatCount(events)} events, {formatBytes(bytes)},{" "}
          {isInPostgres ? "also in Postgres" : "only here"}, checked <Ago at={oldest} />
        </div>
        {damaged.map((file) => (
          <Damage key={file.path} path={file.path} what={file.damage ?? ""} />
        ))}
      </div>
      <ActButton
        word="Verify now"
        label={`Verify now: ${day} of zone ${zoneId}`}
        disabled={run !== null && run.endedAt === null}
        change={start}
        input={{
          kind: "verify-archive",
          zone: zoneId,
          from: `${day}T00:00:00Z`,
          to: new Date(Date.parse(day) + DAY_MS).toISOString(),
        }}
      />
      <div className="lw-across">{start.error === null ? null : <ProblemBox thrown={start.error} />}</div>
      {run === null ? null : (
        <CheckOutcome run={run} day={day} shown={new Set(damaged.map(({ path }) => path))} />
      )}
      <details className="lw-across">
        <summary className="lw-note">{many(files.length, "file")}</summary>
        {files.map((file) => (
          <File key={file.path} file={file} />
        ))}
      </details>
    </li>
  );
}

function Damage({ path, what }: { readonly path: string; readonly what: string }) {
  return (
    <div className="lw-fire">
      <Payload text={path} /> <Payload prose text={what} />
    </div>
  );
}

/** The newest check of a day that covers it; null if nobody has started one in the last time. */
function useLastCheck(zoneId: number, day: string): CoverageRun | null {
  const { data } = useCoverageRuns();
  const atMs = Date.parse(day);
  const isCheck = ({ kind, zoneId: one, from, to }: CoverageRun) =>
    kind === "verify-archive" && one === zoneId && Date.parse(from) <= atMs && atMs < Date.parse(to);
  return data?.items.find(isCheck) ?? null;
}

interface OutcomeProps {
  readonly run: CoverageRun;
  readonly day: string;
  /** Paths of files whose problem is shown above. */
  readonly shown: ReadonlySet<string>;
}

function CheckOutcome({ run, day, shown }: OutcomeProps) {
  const { problem, endedAt, archive } = run;
  if (endedAt === null) return <RunProgress run={run} doing="reads the files" />;
  if (archive === null)
    return (
      <div className="lw-across lw-warn" role="status">
        The check <Ago at={endedAt} /> failed:{" "}
        <Payload prose text={problem ?? ""} none="no reason is known" />
      </div>
    );
  const mine = archive.problems.filter((one) => one.day === day);
  return (
    <div className="lw-across lw-note" role="status">
      Verified <Ago at={endedAt} />:{" "}
      {mine.length === 0
        ? "every file equals its hash, its statement and the counts."
        : `${many(mine.length, "problem")}.`}
      {mine
        .filter(({ path }) => !shown.has(path))
        .map(({ path, problem: wrong }) => (
          <Damage key={`${path} ${wrong}`} path={path} what={wrong} />
        ))}
    </div>
  );
}

function File({ file }: { readonly file: ArchiveDay["files"][number] }) {
  const { kind, path, sha256, bytes, rows, writtenAt, checkedAt, damage } = file;
  const whole = <Moment at={checkedAt} />;
  return (
    <Pairs
      of={[
        [kind, `${formatCount(rows)} rows, ${formatBytes(bytes)}`],
        ["written", <Moment key="written" at={writtenAt} />],
        ["last check", damage === null ? <>{whole}, whole</> : <span className="lw-fire">damaged</span>],
        ["file", <Payload key="file" text={path} />],
        ["SHA-256", <Payload key="hash" text={sha256} />],
      ]}
    />
  );
}
