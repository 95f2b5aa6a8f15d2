import { SOURCE_KINDS, type SourceKind, type SpikeSeverity, WINDOWS } from "#model/kinds.ts";
import { type Finding, judgeMinute } from "../judge-minute.ts";
import type { Thresholds } from "../thresholds/thresholds.ts";
import type { Leader } from "./distinct-members.ts";
import type { SourceMinute } from "./source-counter.ts";
import { floorOf } from "./source-thresholds.ts";
import { SOURCE_Z } from "./source-z.ts";

/** An episode ends when no series has fired for this many minutes. */
const QUIET_MINUTES = 30;
/** The distance above its z from which one series alone is critical. */
const CRITICAL_ABOVE_Z = 3;
/** An episode in which this many series fire is critical. */
const CRITICAL_SERIES = 3;

/** The strongest minute of one series in an episode. */
export interface SourceFinding extends Finding {
  readonly kind: SourceKind;
  readonly key: string;
  /** Different members of the key, and how many of them are usual for it. `count` is their difference. */
  readonly members: number;
  readonly usualMembers: number;
  /** The end of the minute in which the series fired first. */
  readonly since: number;
}

/**
 * All source series of a zone from the first that fires to the end of the last. Minutes are numbered since the epoch,
 * and times are the ends of minutes.
 */
export interface SourceEpisode {
  readonly openedAt: number;
  readonly lastFiredAt: number;
  readonly severity: SpikeSeverity;
  /** The series that opened the episode. */
  readonly kind: SourceKind;
  /** By series, in the order in which they fired. */
  readonly findings: readonly SourceFinding[];
}

export interface ClosedSourceMinute {
  readonly minute: number;
  readonly counts: SourceMinute;
  readonly thresholdsOf: (kind: SourceKind) => Thresholds;
}

/** Opens an episode, or adds a minute to an open one. Never closes it. Taking a minute twice changes nothing. */
export function followSources(
  episode: SourceEpisode | null,
  { minute, counts, thresholdsOf }: ClosedSourceMinute,
): SourceEpisode | null {
  const endsAt = minute + 1;
  const fired = SOURCE_KINDS.flatMap((kind) => judgeSeries(kind, counts, thresholdsOf, endsAt));
  if (fired.length === 0) return episode;
  const findings = mergeFindings(episode?.findings ?? [], fired);
  const first = fired.reduce((one, other) => (overZ(other) > overZ(one) ? other : one));
  return {
    openedAt: Math.min(episode?.openedAt ?? endsAt, endsAt),
    lastFiredAt: Math.max(episode?.lastFiredAt ?? endsAt, endsAt),
    kind: episode?.kind ?? first.kind,
    severity: gradeSources(findings),
    findings,
  };
}

/** Returns whether the episode is over. `minute` is the latest closed minute, already followed. */
export function isSourceOver(episode: SourceEpisode, minute: number): boolean {
  return minute + 1 - episode.lastFiredAt >= QUIET_MINUTES;
}

/** Returns the finding furthest above its line. */
export function strongestOf({ findings }: Pick<SourceEpisode, "findings">): SourceFinding {
  return findings.reduce((one, other) => (overZ(other) > overZ(one) ? other : one));
}

function judgeSeries(
  kind: SourceKind,
  counts: SourceMinute,
  thresholdsOf: (kind: SourceKind) => Thresholds,
  since: number,
): SourceFinding[] {
  const { excess, leaders } = counts[kind];
  // Thresholds take longer than counting, and most minutes of most zones need none.
  if (excess.every((count) => count < floorOf(kind))) return [];
  const finding = judgeMinute(excess, thresholdsOf(kind));
  const leader: Leader | null | undefined = finding && leaders[WINDOWS.indexOf(finding.windowMinutes)];
  if (finding === null || !leader) return [];
  return [{ ...finding, kind, key: leader.key, members: leader.count, usualMembers: leader.usual, since }];
}

function mergeFindings(before: readonly SourceFinding[], fired: readonly SourceFinding[]): SourceFinding[] {
  const merged = new Map(before.map((finding) => [finding.kind, finding]));
  for (const finding of fired) {
    const known = merged.get(finding.kind);
    if (known === undefined) merged.set(finding.kind, finding);
    else if (finding.score > known.score)
      merged.set(finding.kind, { ...finding, since: Math.min(known.since, finding.since) });
  }
  return [...merged.values()];
}

function gradeSources(findings: readonly SourceFinding[]): SpikeSeverity {
  if (findings.length >= CRITICAL_SERIES) return "critical";
  return findings.some((finding) => overZ(finding) >= CRITICAL_ABOVE_Z) ? "critical" : "error";
}

function overZ({ kind, score }: SourceFinding): number {
  return score - SOURCE_Z[kind];
}
