import { findCluster } from "#adapters/embedded/place-cluster.ts";
import { type RecordedOutage, readOutageFile } from "#adapters/embedded/supervise-postgres.ts";
import { describeDisk, readDiskSpace } from "#lib/disk.ts";
import { showTime } from "#lib/format.ts";

/** How long an ended outage is shown. */
const SHOWN_MS = 24 * 3_600_000;

/** Returns what is known of the embedded Postgres that is down now, in lines; null where it is not known to be down. */
export function describeOutage(dataDir: string): string | null {
  const outage = readOutageFile(dataDir);
  if (outage === null || outage.untilMs !== null) return null;
  const space = readDiskSpace(findCluster(dataDir));
  const facts = space === null ? `the disk of ${dataDir} is full` : describeDisk(space);
  return [
    `The service runs, but its embedded Postgres has been down since ${showTime(outage.sinceMs)} UTC (${outage.reason}).`,
    `Failed restarts: ${outage.failedRestarts}. The service tries again at least every 30 s.`,
    ...lastLines(outage),
    ...(outage.isDiskFull ? [`The disk is full: ${facts}. Free space or enlarge the disk.`] : []),
  ].join("\n");
}

/** Returns the lines about an outage that ended less than a day before `nowMs`. */
export function describePastOutage(dataDir: string, nowMs: number): string[] {
  const outage = readOutageFile(dataDir);
  if (outage === null || outage.untilMs === null || nowMs - outage.untilMs > SHOWN_MS) return [];
  const { sinceMs, untilMs, reason } = outage;
  const span = `from ${showTime(sinceMs)} to ${showTime(untilMs)} UTC`;
  return [`The embedded Postgres was down ${span} (${reason}); it was restarted.`, ...lastLines(outage)];
}

function lastLines({ lines }: RecordedOutage): string[] {
  return lines.length === 0 ? [] : ["Its last error lines:", ...lines.map((line) => `  ${line}`)];
}
