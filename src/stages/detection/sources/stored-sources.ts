import { MINUTE_MS } from "#lib/units.ts";
import { SOURCES_RULE, type StoredSources } from "#model/stored-sources.ts";
import { type SourceEpisode, strongestOf } from "./source-episode.ts";
import type { SourceEvidence } from "./source-evidence.ts";

/** The members of a row that say how an episode is remembered. */
export interface StoredSourceEpisode {
  readonly openedAt: Date;
  readonly lastActiveAt: Date;
  readonly severity: SourceEpisode["severity"];
  readonly sources: StoredSources | null;
}

const toDate = (minute: number) => new Date(minute * MINUTE_MS);
const toMinute = (date: Date) => Math.floor(date.getTime() / MINUTE_MS);
/** The count is an everyday one again if nothing has fired for so many minutes. */
const CALM_MINUTES = 3;

/** Returns the episode of a row; null if the row holds none. */
export function toSourceEpisode(stored: StoredSourceEpisode): SourceEpisode | null {
  const { sources, severity } = stored;
  if (sources === null || sources.findings.length === 0) return null;
  return {
    openedAt: toMinute(stored.openedAt),
    lastFiredAt: toMinute(stored.lastActiveAt),
    severity,
    kind: sources.kind,
    findings: sources.findings,
  };
}

/** Returns the row of an episode that was judged up to the minute `judgedThrough`, exclusive. */
export function toSourceRow(
  episode: SourceEpisode,
  evidence: Pick<SourceEvidence, "grown" | "rules" | "events" | "isMasked" | "known"> & {
    readonly firstSeen?: number | null | undefined;
  },
  { judgedThrough, closedAt }: { judgedThrough: number; closedAt: number | null },
) {
  const { openedAt, lastFiredAt, severity, kind, findings } = episode;
  const { windowMinutes, count, usual, threshold, score } = strongestOf(episode);
  const isCalm = judgedThrough - lastFiredAt >= CALM_MINUTES;
  const { grown, rules, events, isMasked, known = 0, firstSeen = null } = evidence;
  return {
    ruleId: SOURCES_RULE,
    kind: "sources" as const,
    openedAt: toDate(openedAt),
    closedAt: closedAt === null ? null : toDate(closedAt),
    lastActiveAt: toDate(lastFiredAt),
    judgedThrough: toDate(judgedThrough),
    baseline: usual,
    threshold,
    score,
    peak: count,
    windowCount: isCalm ? 0 : count,
    windowMinutes,
    severity,
    sources: {
      kind,
      findings: [...findings],
      grown,
      rules,
      events,
      isMasked,
      known,
      firstSeen,
    } satisfies StoredSources,
  };
}
