import type { Queryable } from "#db/client.ts";
import { collectEvidence, type EvidenceScope, noEvidence } from "#db/detection/spike-evidence.ts";
import { openSpike, type RuleSpikeRow, type SpikeChange, updateSpikes } from "#db/detection/spikes.ts";
import type { Candidate, SeriesOutcome, TickSpan } from "#detection/rules/assess-series.ts";
import { LONGEST_WINDOW } from "#detection/rules/detection-settings.ts";
import type { Episode } from "#detection/rules/episode.ts";
import {
  isNews,
  isSameEpisode,
  type StoredEpisode,
  toStoredEpisode,
} from "#detection/rules/stored-episode.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import type { SeriesKey } from "#model/fingerprint.ts";
import type { GradedBy } from "#model/kinds.ts";

/** Maximum number of spikes whose evidence is collected in one tick. The next ticks collect the rest. */
const EVIDENCE_PER_TICK = 50;
/** While many spikes are open, the evidence of one of them is collected again in so much time. */
const EVIDENCE_EVERY_MS = 2_000;

export type OpenSpike = Candidate<RuleSpikeRow>;

/** How many spikes changed. */
export interface DetectedSpikes {
  readonly opened: number;
  readonly updated: number;
  readonly closed: number;
}

/** An episode of a series in this tick. */
export interface Assessed extends Pick<SeriesOutcome, "countedTo"> {
  readonly candidate: OpenSpike;
  readonly episode: Episode;
  /** The end of the minute that closed it; null while it is open. */
  readonly closedAt: number | null;
  readonly memberOf: number | null;
  /** The series whose spike opens in this tick and holds the alert of this one. */
  readonly lead?: SeriesKey;
  readonly addresses: number | null;
  readonly mainSenders: number | null;
  readonly gradedBy: GradedBy | null;
}

/** A spike and what is to be stored of it. */
interface Outcome extends Assessed {
  readonly stored: StoredEpisode;
  readonly scope: EvidenceScope;
  /** Whether evidence is collected before the spike is stored. */
  readonly isCollected: boolean;
}

/** Returns what changes, the most urgent first. */
function planOutcomes(span: TickSpan, assessed: readonly Assessed[]): Outcome[] {
  const open = assessed.filter(({ candidate: { row } }) => row !== undefined).length;
  let evidenceLeft = EVIDENCE_PER_TICK;
  return assessed.toSorted(byUrgency).flatMap((one) => {
    const { row, tested } = one.candidate;
    const stored = toStoredEpisode(one, { lastTested: tested.at(-1) ?? 0, row, nowMs: span.nowMs });
    const scope = evidenceScope(span, one);
    const isCollected = evidenceLeft > 0 && needsEvidence(one, stored, { toMs: scope.toMs, open });
    if (isCollected) evidenceLeft -= 1;
    if (!isCollected && row !== undefined && isSameEpisode(row, stored)) return [];
    return [{ ...one, stored, scope, isCollected }];
  });
}

/**
 * Opens the new spikes, and stores the others: those whose evidence stays with one statement, because in an attack on
 * every rule a tick changes hundreds, then each of the rest with its evidence.
 */
export async function storeSpikes(
  db: Queryable,
  span: TickSpan,
  assessed: readonly Assessed[],
): Promise<DetectedSpikes> {
  const outcomes = planOutcomes(span, assessed);
  const open = outcomes.flatMap((one) => {
    const { row } = one.candidate;
    return row === undefined ? [] : [{ ...one, row }];
  });
  const batches = [
    open.filter(({ isCollected }) => !isCollected),
    ...open.filter(({ isCollected }) => isCollected).map((one) => [one]),
  ];
  let [updated, closed] = [0, 0];
  for (const batch of batches) {
    const changes: SpikeChange[] = [];
    for (const { row, stored, scope, isCollected } of batch) {
      const evidence = isCollected ? await collectEvidence(db, scope) : null;
      changes.push({ ...stored, id: row.id, evidence });
    }
    const ids = await updateSpikes(db, changes);
    for (const { row, stored, isCollected, closedAt } of batch) {
      if (!ids.has(row.id) || !(isCollected || isNews(row, stored))) continue;
      if (closedAt === null) updated += 1;
      else closed += 1;
    }
  }
  // A second wave opens its spike once that of the first is closed.
  return { opened: await openSpikes(db, outcomes), updated, closed };
}

async function openSpikes(db: Queryable, outcomes: readonly Outcome[]): Promise<number> {
  const ids = new Map<SeriesKey, number>();
  const leadsFirst = outcomes.toSorted((a, b) => Number(a.lead !== undefined) - Number(b.lead !== undefined));
  for (const { candidate, stored, scope, isCollected, lead } of leadsFirst) {
    if (candidate.row !== undefined) continue;
    const { zoneId, ruleId } = candidate;
    const evidence = isCollected ? await collectEvidence(db, scope) : noEvidence(scope);
    const memberOf = lead === undefined ? stored.memberOf : (ids.get(lead) ?? null);
    const id = await openSpike(db, { zoneId, ruleId, ...stored, memberOf, evidence });
    if (id !== null) ids.set(candidate, id);
  }
  return ids.size;
}

function hasEvidence({ evidence }: RuleSpikeRow): boolean {
  return evidence.sampled > 0;
}

/**
 * Returns whether evidence has to be collected. Of an active spike it is when the severity has changed, or when a tenth
 * of the spike's age has passed since, at most six minutes, because counting 20,000 events takes Postgres a third of a
 * second. With hundreds of open spikes it is less often. Not while the spike is declining, because on-call needs the
 * events of the attack.
 */
function needsEvidence(
  { candidate: { row } }: Assessed,
  { lastActiveAt, openedAt, severity }: StoredEpisode,
  { toMs, open }: { toMs: number; open: number },
): boolean {
  if (row === undefined || !hasEvidence(row)) return true;
  if (lastActiveAt <= row.lastActiveAt) return false;
  const age = Math.min(toMs - openedAt.getTime(), HOUR_MS);
  const intervalMs = Math.max(age / 10, open * EVIDENCE_EVERY_MS);
  return severity !== row.severity || toMs - Date.parse(row.evidence.to) >= intervalMs;
}

/** Orders new spikes first, then those whose severity changes, then those without evidence, the strongest of each first. */
function byUrgency(one: Assessed, other: Assessed): number {
  const rank = ({ candidate: { row }, episode: { severity } }: Assessed) => {
    if (row === undefined) return 0;
    return severity !== row.severity ? 1 : hasEvidence(row) ? 3 : 2;
  };
  return rank(one) - rank(other) || other.episode.score - one.episode.score;
}

/**
 * Returns the scope of the evidence: from the beginning of the spike's window, at most the last hour, without minutes
 * that a previous spike has reported.
 */
function evidenceScope(span: TickSpan, { episode, candidate, countedTo }: Assessed) {
  const { zoneId, ruleId, counts, countFrom } = candidate;
  const sinceMs = Math.max(episode.openedAt - episode.windowMinutes, countFrom) * MINUTE_MS;
  const toMs = Math.min(countedTo * MINUTE_MS, span.nowMs);
  const end = countedTo - span.firstMinute;
  const sparkline = Array.from(counts.subarray(end - LONGEST_WINDOW, end));
  return { zoneId, ruleId, fromMs: Math.max(sinceMs, toMs - HOUR_MS), toMs, sinceMs, sparkline };
}
