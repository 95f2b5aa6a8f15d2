import { Button } from "@mantine/core";
import { DAY_MS } from "#lib/units.ts";
import {
  type ArchiveDay,
  type CoverageRun,
  useArchiveDays,
  useCoverageRuns,
  useStartRun,
} from "../../api/coverage.ts";
import { useMay } from "../../api/session.ts";
import { useStatus } from "../../api/status.ts";
import { Ago, Moment } from "../../components/ago.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Empty, Partial, ProblemBox, QueryView } from "../../components/states.tsx";
import { formatBytes, formatCount } from "../../look/words.ts";
import { useSpan } from "../../state/span.ts";
import { useZones, useZoneTitle } from "../../state/zones.ts";
import classes from "./coverage.module.css";
import { RunProgress } from "./run-progress.tsx";

const MOST_SHOWN = 62;
const LONGEST_MS = 799 * DAY_MS;

/** The days of the span that are in the archive, with their files and last checks. */
export function ArchiveDays() {
  const { fromMs, toMs, narrow } = useSpan();
  const { zones, only } = useZones();
  const ids = new Set(zones.map(({ id }) => id));
  const startMs = Math.max(fromMs, toMs - LONGEST_MS);
  const span = { from: startMs - (startMs % DAY_MS), to: Math.ceil(toMs / DAY_MS) * DAY_MS };
  const days = useArchiveDays(only?.id ?? null, span);
  const kept = (useStatus().data?.archive ?? []).filter(({ zoneId }) => ids.has(zoneId));
  const [first = ""] = kept.map(({ firstDay }) => firstDay).sort();
  const last =
    kept
      .map(({ lastDay }) => lastDay)
      .sort()
      .at(-1) ?? "";
  const bytes = kept.reduce((sum, { eventBytes, recordBytes }) => sum + eventBytes + recordBytes, 0);
  return (
    <Panel
      title="Archive"
      about={
        kept.length === 0
          ? "UTC days that can no longer change"
          : `UTC days that can no longer change, ${first} to ${last}, ${formatBytes(bytes)}`
      }
      flush
    >
      <QueryView query={days} rows={2} asking="the archive days">
        {(items) => {
          const found = items.filter(({ zoneId }) => ids.has(zoneId));
          if (kept.length === 0)
            return <Empty>No day is archived yet. The command longwatch archive status says why.</Empty>;
          if (found.length === 0)
            return (
              <Empty
                action={
                  <Button
                    variant="default"
                    onClick={() => narrow(Date.parse(first), Date.parse(last) + DAY_MS)}
                  >
                    Show the archive days
                  </Button>
                }
              >
                No day of the span is archived.
              </Empty>
            );
          return (
            <>
              {found.length > MOST_SHOWN ? (
                <Partial>
                  The newest {MOST_SHOWN} of {formatCount(found.length)}. Narrow the span to see the others.
                </Partial>
              ) : null}
              <ul className="lw-rows">
                {found.slice(0, MOST_SHOWN).map((day) => (
                  <DayRow key={`${day.zoneId} ${day.day}`} day={day} />
                ))}
              </ul>
            </>
          );
        }}
      </QueryView>
    </Panel>
  );
}

function DayRow({ day: { day, zoneId, isInPostgres, files } }: { readonly day: ArchiveDay }) {
  const zoneName = useZoneTitle();
  const run = useLastCheck(zoneId, day);
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
        {damaged.map(({ path, damage }) => (
          <div key={path} className="lw-fire">
            <Payload text={path} /> <Payload prose text={damage ?? ""} />
          </div>
        ))}
      </div>
      <VerifyNow zoneId={zoneId} day={day} run={run} />
      {run === null ? null : (
        <CheckOutcome run={run} day={day} shown={new Set(damaged.map(({ path }) => path))} />
      )}
      <details className={classes["wide"]}>
        <summary className="lw-note">
          {files.length} {files.length === 1 ? "file" : "files"}
        </summary>
        {files.map((file) => (
          <File key={file.path} file={file} />
        ))}
      </details>
    </li>
  );
}

/** The newest check of a day that covers it; null if nobody has started one in the last time. */
function useLastCheck(zoneId: number, day: string): CoverageRun | null {
  const { data } = useCoverageRuns();
  const atMs = Date.parse(day);
  return (
    data?.items.find(
      (run) =>
        run.kind === "verify-archive" &&
        run.zoneId === zoneId &&
        Date.parse(run.from) <= atMs &&
        atMs < Date.parse(run.to),
    ) ?? null
  );
}

interface VerifyProps {
  readonly zoneId: number;
  readonly day: string;
  readonly run: CoverageRun | null;
}

function VerifyNow({ zoneId, day, run }: VerifyProps) {
  const start = useStartRun();
  const isRunning = run !== null && run.endedAt === null;
  if (!useMay("act")) return null;
  return (
    <>
      <Button
        variant="default"
        loading={start.isPending}
        disabled={isRunning}
        aria-label={`Verify now: ${day} of zone ${zoneId}`}
        onClick={() =>
          start.mutate({
            kind: "verify-archive",
            zone: zoneId,
            from: `${day}T00:00:00Z`,
            to: new Date(Date.parse(day) + DAY_MS).toISOString(),
          })
        }
      >
        Verify now
      </Button>
      {start.error === null ? null : (
        <div className={classes["wide"]}>
          <ProblemBox thrown={start.error} />
        </div>
      )}
    </>
  );
}

interface OutcomeProps {
  readonly run: CoverageRun;
  readonly day: string;
  /** Paths of files whose problem is shown above. */
  readonly shown: ReadonlySet<string>;
}

function CheckOutcome({ run, day, shown }: OutcomeProps) {
  const { problem, endedAt, archive } = run;
  if (endedAt === null)
    return (
      <>
        <RunProgress run={run} doing="reads the files" />
        {problem === null ? null : (
          <div className={`${classes["wide"]} lw-warn`}>
            The last start failed and is repeated: <Payload prose text={problem} />
          </div>
        )}
      </>
    );
  if (archive === null)
    return (
      <div className={`${classes["wide"]} lw-warn`} role="status">
        The check <Ago at={endedAt} /> failed:{" "}
        <Payload prose text={problem ?? ""} none="no reason is known" />
      </div>
    );
  const mine = archive.problems.filter((one) => one.day === day);
  return (
    <div className={`${classes["wide"]} lw-note`} role="status">
      Verified <Ago at={endedAt} />:{" "}
      {mine.length === 0
        ? "every file equals its hash, its statement and the counts."
        : `${mine.length} ${mine.length === 1 ? "problem" : "problems"}.`}
      {mine
        .filter(({ path }) => !shown.has(path))
        .map(({ path, problem: wrong }) => (
          <div key={`${path} ${wrong}`} className="lw-fire">
            <Payload text={path} /> <Payload prose text={wrong} />
          </div>
        ))}
    </div>
  );
}

function File({
  file: { kind, path, sha256, bytes, rows, writtenAt, checkedAt, damage },
}: {
  readonly file: ArchiveDay["files"][number];
}) {
  return (
    <dl className={classes["file"]}>
      <div>
        <dt>{kind}</dt>
        <dd>
          {formatCount(rows)} rows, {formatBytes(bytes)}
        </dd>
      </div>
      <div>
        <dt>written</dt>
        <dd>
          <Moment at={writtenAt} />
        </dd>
      </div>
      <div>
        <dt>last check</dt>
        <dd>
          {damage === null ? (
            <>
              <Moment at={checkedAt} />, whole
            </>
          ) : (
            <span className="lw-fire">damaged</span>
          )}
        </dd>
      </div>
      <div className={classes["long"]}>
        <dt>file</dt>
        <dd>
          <Payload text={path} />
        </dd>
      </div>
      <div className={classes["long"]}>
        <dt>SHA-256</dt>
        <dd>
          <Payload text={sha256} />
        </dd>
      </div>
    </dl>
  );
}
